"""No name leads out of the folder, and a motif gives no user more rights to read."""

import os

import pytest

from sluice_core.errors import CallerError
from sluice_motifs.api import ExpansionError
from sluice_motifs_fs.storage.paths import PRIVATE, SourceFolder


@pytest.fixture
def folder(tmp_path):
    top = tmp_path / "top"
    (top / "below").mkdir(parents=True)
    (top / "below/file").write_bytes(b"x")
    (tmp_path / "secret").write_bytes(b"x")
    (top / "link").symlink_to("below")
    (top / "below/link").symlink_to("../../secret")
    folder = SourceFolder(top)
    yield folder
    folder.close()


@pytest.mark.parametrize(
    "name", ["", ".", "..", "../secret", "/etc/passwd", "below/../../secret", f"{PRIVATE}/x", "a\0b"]
)
def test_names_of_no_file_of_the_folder_are_refused(folder, name):
    with pytest.raises(CallerError):
        folder.stat(name)


@pytest.mark.parametrize("name", ["link/file", "below/link", "below", "missing", "below/file/x"])
def test_links_and_folders_are_no_files(folder, name):
    assert folder.stat(name) is None


def test_a_user_must_have_the_right_to_read(folder, tmp_path):
    file, below = tmp_path / "top/below/file", tmp_path / "top/below"
    stranger = os.geteuid() + 1
    below.chmod(0o755)
    file.chmod(0o644)
    assert folder.stat("below/file", stranger) is not None
    file.chmod(0o640)
    with pytest.raises(ExpansionError, match="may not read"):
        folder.stat("below/file", stranger)
    assert folder.stat("below/file", os.geteuid()) is not None
    file.chmod(0o644)
    below.chmod(0o750)
    with pytest.raises(ExpansionError, match="may not read"):
        folder.stat("below/file", stranger)
