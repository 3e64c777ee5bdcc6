"""Paths of the files that the kernel knows."""

import pytest

from sluice_motifs_fs.operations.nodes import Nodes


@pytest.fixture
def nodes():
    """``folder/below/file``, ``folder/other`` and ``file`` at the top."""
    nodes = Nodes()
    folder = nodes.enter(2, nodes.top, "folder")
    below = nodes.enter(3, folder, "below")
    nodes.enter(4, below, "file")
    nodes.enter(5, folder, "other")
    nodes.enter(6, nodes.top, "file")
    return nodes


def paths(nodes):
    return {inode: nodes.path(nodes[inode]) for inode in range(2, 7) if inode in nodes}


def test_files_have_paths_from_the_top(nodes):
    assert paths(nodes) == {2: "folder", 3: "folder/below", 4: "folder/below/file", 5: "folder/other", 6: "file"}


def test_a_folder_is_renamed_with_what_is_in_it(nodes):
    paths(nodes)
    nodes.rename(nodes.top, "folder", nodes.top, "moved")
    nodes.rename(nodes[2], "below", nodes.top, "up")
    assert paths(nodes) == {2: "moved", 3: "up", 4: "up/file", 5: "moved/other", 6: "file"}


def test_what_is_overwritten_has_no_name_any_more(nodes):
    nodes.rename(nodes[2], "other", nodes.top, "file")
    assert (nodes.path(nodes[5]), nodes.path(nodes[6])) == ("file", None)
    nodes.leave(nodes.top, "folder")
    with pytest.raises(OSError):
        nodes.below(nodes[2], "new")


def test_a_file_with_two_names_keeps_the_other(nodes):
    nodes.enter(6, nodes[2], "link")
    nodes.leave(nodes.top, "file")
    assert nodes.path(nodes[6]) == "folder/link"
    nodes.leave(nodes[2], "link")
    assert nodes.path(nodes[6]) is None


def test_a_name_that_another_file_has_now_is_that_file(nodes):
    nodes.enter(7, nodes.top, "file")
    nodes.enter(7, nodes[2], "other")
    assert nodes.path(nodes[7]) == "file"
    assert nodes[2].children["other"] is nodes[7]


def test_a_file_is_known_until_all_that_was_told_is_forgotten(nodes):
    nodes.enter(6, nodes.top, "file")
    nodes.forget(6, 1)
    assert 6 in nodes
    nodes.forget(6, 1)
    assert 6 not in nodes
    assert "file" not in nodes.top.children
