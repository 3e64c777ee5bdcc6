"""A file keeps which revisions failed on a node."""

import pytest

from sluice_block.uploaded.catalogue import Refusals
from sluice_core.errors import PeerError


def test_a_refused_revision_is_known_to_the_next_process_and_others_are_not(tmp_path):
    Refusals(tmp_path / "state" / "refused").add("rot", 1, "ab", "it crashed", "v")
    Refusals(tmp_path / "state" / "refused").add("rot", 2, "cd", "it hung", "v")
    known = Refusals(tmp_path / "state" / "refused")
    assert (known.reason("ab"), known.reason("cd"), known.reason("ef")) == ("it crashed", "it hung", "")


def test_a_file_that_cannot_be_read_refuses_rather_than_forgets(tmp_path):
    (tmp_path / "refused").write_bytes(b"{")
    with pytest.raises(PeerError, match="cannot be read, it names the filters that failed here"):
        Refusals(tmp_path / "refused").reason("ab")
