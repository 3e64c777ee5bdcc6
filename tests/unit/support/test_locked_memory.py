"""Files that are locked in memory."""

import os

import pytest
from tests.support.cluster.locked_memory import locked

from sluice_core.errors import PeerError

SIZE = 300_000


@pytest.fixture
def path(tmp_path):
    found = tmp_path / "file"
    found.write_bytes(b"x" * SIZE)
    return found


def bytes_locked():
    """Bytes that this process has locked, as the kernel reports."""
    with open("/proc/self/status", encoding="ascii") as file:
        (line,) = [line for line in file if line.startswith("VmLck:")]
    return int(line.split()[1]) * 1024


def test_all_of_a_file_is_locked_while_the_context_lasts(path):
    (path.parent / "empty").touch()
    before = bytes_locked()
    with locked(path.parent.iterdir()):
        page = os.sysconf("SC_PAGE_SIZE")
        assert bytes_locked() - before == -(-SIZE // page) * page
    assert bytes_locked() == before


def test_what_the_kernel_refuses_is_named_and_nothing_stays_locked(path, monkeypatch):
    before = bytes_locked()
    monkeypatch.setattr("tests.support.cluster.locked_memory._libc.mlock", lambda place, size: -1)
    with pytest.raises(PeerError, match=f"mlock of `{path}`"), locked([path]):
        pass
    assert bytes_locked() == before
