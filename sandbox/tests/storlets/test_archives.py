"""Third-party archives write only below the folder that they are unpacked to, and only files."""

import io
import tarfile

import pytest

from sluice_core.errors import PeerError
from sluice_sandbox.storlets.java import unpack


@pytest.fixture
def archive(tmp_path):
    def make(**files):
        path = tmp_path / "made.tar.gz"
        with tarfile.open(path, "w:gz") as tar:
            for name, content in files.items():
                info = tarfile.TarInfo(name)
                if content is None:
                    info.type, info.linkname = tarfile.SYMTYPE, "/etc/passwd"
                info.size = len(content or b"")
                tar.addfile(info, io.BytesIO(content or b""))
        return path

    return make


def files(folder):
    return {str(one.relative_to(folder)): one.read_bytes() for one in folder.rglob("*") if one.is_file()}


def test_files_are_written_with_their_folders(archive, tmp_path):
    unpack(archive(**{"p-1/a/b.py": b"b", "p-1/c": b""}), tmp_path / "out")
    assert files(tmp_path / "out") == {"p-1/a/b.py": b"b", "p-1/c": b""}


def test_others_than_those_wanted_and_links_are_left_out(archive, tmp_path):
    made = archive(**{"p-1/a/b": b"b", "p-1/c": b"c", "p-1/a/link": None})
    unpack(made, tmp_path / "out", lambda name: name.startswith("p-1/a"))
    assert files(tmp_path / "out") == {"p-1/a/b": b"b"}


@pytest.mark.parametrize("name", ["../evil", "p-1/../../evil", "/evil", "{there}/evil"])
def test_a_name_that_leads_elsewhere_is_refused(archive, tmp_path, name):
    name = name.format(there=tmp_path)
    with pytest.raises(PeerError, match="leads out of the folder"):
        unpack(archive(**{name: b"x"}), tmp_path / "out")
    assert not (tmp_path / "evil").exists()


def test_a_link_on_the_way_is_not_followed(archive, tmp_path):
    out = tmp_path / "out"
    out.mkdir()
    (out / "p-1").symlink_to(tmp_path)
    with pytest.raises(PeerError, match="leads out of the folder"):
        unpack(archive(**{"p-1/evil": b"x"}), out)
    assert not (tmp_path / "evil").exists()


@pytest.mark.parametrize("cut", [0, 60])
def test_what_is_no_archive_or_not_whole_is_told(archive, tmp_path, cut):
    broken = archive(**{"p-1/c": bytes(range(256)) * 20})
    broken.write_bytes(broken.read_bytes()[:cut] or b"<html>")
    with pytest.raises(PeerError, match=r"`made\.tar\.gz` is no archive that can be unpacked"):
        unpack(broken, tmp_path / "out")
