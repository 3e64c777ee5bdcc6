"""Files of volumes: complete or absent, for every failure of their creation."""

import errno
import stat
import subprocess

import pytest

from sluice_block.cinder_nbd.pools import Pool, PoolFull, VolumeFiles

SIZE = 1 << 20


def run(command):
    subprocess.run(command, check=True, capture_output=True)


@pytest.fixture
def files(tmp_path):
    return VolumeFiles(Pool("fast", tmp_path), run)


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_a_new_volume_is_sparse_zeros_for_its_owner_only(files, tmp_path):
    files.create("v", SIZE)
    found = (tmp_path / "v").stat()
    assert (found.st_size, found.st_blocks, stat.S_IMODE(found.st_mode)) == (SIZE, 0, 0o600)


def test_a_copy_has_the_bytes_and_the_larger_size_and_stays_sparse(files, tmp_path):
    files.create("v", SIZE)
    with (tmp_path / "v").open("r+b") as file:
        file.write(b"x" * 4096)
    files.copy(files.path("v"), "w", 2 * SIZE)
    copy = tmp_path / "w"
    assert copy.read_bytes() == b"x" * 4096 + bytes(2 * SIZE - 4096)
    assert copy.stat().st_blocks * 512 <= 8192


def test_a_copy_that_fails_leaves_nothing(tmp_path):
    def full(command):
        raise OSError(errno.ENOSPC, "No space left on device")

    (tmp_path / "v").write_bytes(b"x")
    with pytest.raises(OSError, match="No space"):
        VolumeFiles(Pool("fast", tmp_path), full).copy(tmp_path / "v", "w")
    assert names(tmp_path) == ["v"]


def test_what_a_crash_left_unfinished_is_replaced(files, tmp_path):
    (tmp_path / ".v.new").write_bytes(b"half of it")
    files.create("v", SIZE)
    assert names(tmp_path) == ["v"]
    assert not any((tmp_path / "v").read_bytes())


def test_a_copy_larger_than_the_pools_free_space_is_refused_before_it_begins(tmp_path):
    (tmp_path / "v").write_bytes(b"x" * 8192)
    files = VolumeFiles(Pool("fast", tmp_path, 12_000), run)
    with pytest.raises(PoolFull, match="pool `fast` has 3808 bytes free, expected 8192 for `w`"):
        files.copy(tmp_path / "v", "w")


def test_extending_never_cuts(files, tmp_path):
    files.create("v", SIZE)
    files.extend("v", 2 * SIZE)
    files.extend("v", SIZE)
    assert (tmp_path / "v").stat().st_size == 2 * SIZE


def test_deleting_takes_the_unfinished_file_along_and_may_be_repeated(files, tmp_path):
    files.create("v", SIZE)
    (tmp_path / ".v.new").write_bytes(b"")
    files.delete("v")
    files.delete("v")
    assert names(tmp_path) == []


@pytest.mark.parametrize("name", ["", "..", "a/b", "/etc/passwd", ".hidden", "a\nb", "x" * 201])
def test_a_name_of_a_file_elsewhere_is_refused(files, name):
    with pytest.raises(ValueError, match="a volume is called"):
        files.path(name)
