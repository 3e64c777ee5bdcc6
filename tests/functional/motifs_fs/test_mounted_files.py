"""Operations of a mount's client on items and their sources.

Tests docs/admin/motif-file-system.md.
"""

import errno
import os
import subprocess
import threading
import time

import pytest

CONTENT = b"0123456789abcdef" * 200_000


@pytest.fixture
def copy(mount):
    """A contracted copy of ``source``."""
    (mount.path / "source").write_bytes(CONTENT)
    copy = mount.path / "copy"
    copy.write_bytes(CONTENT)
    mount.attach("copy", "concat", of="source")
    mount.contract("copy")
    return copy


@pytest.fixture
def held(mount, tmp_path):
    """The same by a template that stops in the middle, until ``hold`` is removed."""
    (mount.path / "source").write_bytes(CONTENT)
    copy = mount.path / "held"
    copy.write_bytes(CONTENT)
    mount.attach("held", "held_copy", of="source", folder=tmp_path)
    mount.contract("held")  # which verifies it before
    (tmp_path / "begun").unlink()
    (tmp_path / "hold").touch()
    return copy


def wait_for(true):
    """Wait until a condition is true."""
    end = time.monotonic() + 30
    while not true():
        assert time.monotonic() < end
        time.sleep(0.01)


def refused(number, call, *arguments):
    """Whether a call ends in this error."""
    with pytest.raises(OSError) as failure:
        call(*arguments)
    return failure.value.errno == number


def test_a_contracted_file_keeps_what_stat_shows(mount, copy):
    os.utime(copy, ns=(5 * 10**18, 4 * 10**18 + 7))
    copy.chmod(0o640)
    stored = (mount.source / "copy").stat()
    assert (stored.st_size, stored.st_blocks <= 8) == (0, True)
    shown = copy.stat()
    assert (shown.st_size, shown.st_mtime_ns, shown.st_mode & 0o777) == (len(CONTENT), 4 * 10**18 + 7, 0o640)
    assert copy.read_bytes() == CONTENT
    after = copy.stat()
    assert (after.st_ino, after.st_size, after.st_mtime_ns) == (shown.st_ino, len(CONTENT), 4 * 10**18 + 7)
    wait_for(lambda: mount.state("copy") == "expanded")


def test_the_attributes_of_a_mount_are_those_of_its_files(mount, copy):
    os.setxattr(copy, "user.note", b"kept")
    assert sorted(os.listxattr(copy)) == ["user.note", "user.sluice.motif", "user.sluice.motif.state"]
    assert os.getxattr(copy, "user.sluice.motif") == b'[{"template": "concat", "params": {"of": "source"}}]'
    assert copy.read_bytes() == CONTENT
    assert os.getxattr(copy, "user.note") == b"kept"


def test_reads_wait_for_their_bytes_only(held, tmp_path):
    with held.open("rb") as file:
        assert file.read(100_000) == CONTENT[:100_000]
        rest = []
        reader = threading.Thread(target=lambda: rest.append(file.read()))
        reader.start()
        wait_for((tmp_path / "begun").exists)
        assert not rest
        (tmp_path / "hold").unlink()
        reader.join()
    assert rest == [CONTENT[100_000:]]


def test_a_file_that_is_being_made_has_its_time(held, tmp_path):
    os.utime(held, ns=(5 * 10**18, 4 * 10**18 + 7))
    with held.open("rb"):
        wait_for((tmp_path / "begun").exists)
        os.setxattr(held, "user.note", b"")  # the kernel drops its cached attributes
        assert (held.stat().st_mtime_ns, held.stat().st_size) == (4 * 10**18 + 7, len(CONTENT))
        os.utime(held, ns=(5 * 10**18, 4 * 10**18 + 8))
        (tmp_path / "hold").unlink()
        assert held.read_bytes() == CONTENT
    assert (held.stat().st_mtime_ns, held.read_bytes()) == (4 * 10**18 + 8, CONTENT)


def test_openers_share_one_expansion(held, tmp_path):
    found = []
    readers = [threading.Thread(target=lambda: found.append(held.read_bytes() == CONTENT)) for _ in range(20)]
    for reader in readers:
        reader.start()
    wait_for((tmp_path / "begun").exists)
    (tmp_path / "hold").unlink()
    for reader in readers:
        reader.join()
    assert found == [True] * 20
    assert (tmp_path / "begun").read_text() == "x"


def test_a_source_is_written_while_an_expansion_reads_it(mount, held, tmp_path):
    with held.open("rb") as file:
        assert file.read(10) == CONTENT[:10]
        (mount.path / "source").write_bytes(b"new")
        (tmp_path / "hold").unlink()
        assert file.read() == CONTENT[10:]
    assert held.read_bytes() == b"new"


def test_a_file_that_is_written_has_no_motifs(mount, copy):
    with copy.open("r+b") as file:
        assert mount.state("copy") == "expanded"
        file.write(b"other")
    assert copy.read_bytes() == b"other" + CONTENT[5:]
    assert "user.sluice.motif" not in os.listxattr(copy)
    (mount.path / "source").write_bytes(b"new")
    assert copy.read_bytes() == b"other" + CONTENT[5:]


def test_a_file_that_is_truncated_at_once_is_not_made(mount, held):
    held.write_bytes(b"short")
    assert held.read_bytes() == b"short"
    assert (mount.source / "held").read_bytes() == b"short"


@pytest.mark.parametrize("size", [0, 5, len(CONTENT) + 3])
def test_a_file_is_cut_or_grows(mount, copy, size):
    os.truncate(copy, size)
    assert copy.read_bytes() == (CONTENT + bytes(3))[:size]
    assert "user.sluice.motif" not in os.listxattr(copy)


def test_bytes_are_appended_to_a_contracted_file(copy):
    with copy.open("ab") as file:
        file.write(b"more")
    assert copy.read_bytes() == CONTENT + b"more"


def test_an_item_is_renamed_and_keeps_its_motifs(mount, copy):
    copy = copy.rename(mount.path / "other name")
    assert mount.state("other name") == "contracted"
    (mount.path / "source").write_bytes(b"new")
    assert copy.read_bytes() == b"new"
    copy.unlink()
    assert refused(errno.ENOENT, copy.read_bytes)


def test_a_folder_of_sources_is_renamed_after_their_items_are_expanded(mount):
    for folder in ("sources", "items"):
        (mount.path / folder).mkdir()
    (mount.path / "sources/one").write_bytes(CONTENT)
    (mount.path / "items/copy").write_bytes(CONTENT)
    mount.attach("items/copy", "concat", of="sources/one")
    mount.contract("items/copy")
    (mount.path / "items").rename(mount.path / "moved items")
    assert mount.state("moved items/copy") == "contracted"
    (mount.path / "sources").rename(mount.path / "moved sources")
    assert mount.state("moved items/copy") == "expanded"
    assert (mount.path / "moved items/copy").read_bytes() == CONTENT


def test_a_file_and_its_duplicate_share_one_copy_and_neither_waits_for_the_other(mount):
    (mount.path / "plain").write_bytes(CONTENT)
    (mount.path / "twin").write_bytes(CONTENT)
    mount.attach("twin", "duplicate_of", source="plain")
    mount.contract("twin")
    assert (mount.state("twin"), mount.state("plain")) == ("contracted", "contracted")
    (copy,) = (mount.source / ".sluice-motif" / "copies").iterdir()
    assert copy.read_bytes() == CONTENT
    (mount.path / "plain").write_bytes(b"new")
    assert mount.state("twin") == "contracted"
    assert (mount.path / "twin").read_bytes() == CONTENT
    assert (mount.path / "plain").read_bytes() == b"new"
    (mount.path / "twin").write_bytes(b"other")
    assert mount.stop() == 0
    mount.start()
    assert not copy.exists(), "no file names it"


def test_what_cannot_be_done_is_refused_with_the_reason(mount, copy, tmp_path):
    assert refused(errno.EPERM, os.link, copy, mount.path / "link")
    assert refused(errno.EINVAL, os.setxattr, copy, "user.sluice.motif", b"{}")
    assert refused(errno.EINVAL, os.setxattr, copy, "user.sluice.motif.state", b"gone")
    assert refused(errno.EPERM, os.setxattr, copy, "user.sluice.motif.stored", b"{}")
    (tmp_path / "outside").write_bytes(b"secret")
    for source in ("missing", "../outside", str(tmp_path / "outside")):
        failed = mount.run("attach", copy, "concat", f"of={source}")
        assert failed.returncode == 1
        assert "source" in failed.stderr or "name" in failed.stderr
        assert "Traceback" not in failed.stderr
    failed = mount.run("attach", copy, "concatt", "of=source")
    assert "did you mean `concat`" in failed.stderr


def test_a_link_that_leads_out_of_the_folder_is_no_source(mount, copy, tmp_path):
    (tmp_path / "secret").mkdir()
    (tmp_path / "secret/file").write_bytes(b"secret")
    (mount.path / "link").symlink_to(tmp_path / "secret")
    assert mount.run("attach", copy, "concat", "of=link/file").returncode == 1


def test_items_are_looked_after_by_commands(mount, copy):
    assert mount.run("list", mount.path).stdout == f"{copy}\tcontracted\t{len(CONTENT)}\tconcat of=source\n"
    assert mount.run("expand", copy).returncode == 0
    assert mount.state("copy") == "expanded"
    assert mount.run("contract", copy).returncode == 0
    assert mount.state("copy") == "contracted"
    assert mount.run("detach", copy).returncode == 0
    assert mount.run("list", mount.path).stdout == ""
    assert copy.read_bytes() == CONTENT


def test_programs_see_a_file_system(mount):
    (mount.path / "folder").mkdir()
    script = "tar -C /usr/include -cf - linux | tar -xf - && diff -r /usr/include/linux linux && rm -r linux"
    subprocess.run(["bash", "-ec", script], cwd=mount.path / "folder", check=True)
    assert os.listdir(mount.path / "folder") == []


def test_a_mount_over_its_own_folder(unmounted):
    (unmounted.source / "source").write_bytes(CONTENT)
    unmounted.path = unmounted.source
    unmounted.start()
    (unmounted.path / "copy").write_bytes(CONTENT)
    unmounted.attach("copy", "concat", of="source")
    unmounted.contract("copy")
    assert (unmounted.path / "copy").read_bytes() == CONTENT
    assert unmounted.stop() == 0
    assert sorted(os.listdir(unmounted.source)) == [".sluice-motif", "copy", "source"]
