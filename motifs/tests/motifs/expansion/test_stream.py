import errno
import threading

import pytest

from sluice_motifs.api import ExpansionError
from sluice_motifs.expansion.shared_stream import SharedStream


@pytest.fixture
def stream():
    stream = SharedStream()
    yield stream
    stream.close()


def test_a_range_waits_for_its_own_bytes_only(stream):
    stream.append(b"0123456789")
    assert b"".join(stream.read(2, 8)) == b"234567"


def test_a_slow_reader_gets_all_and_holds_back_nobody(stream):
    stream.append(b"first ")
    slow = stream.read()
    assert next(slow) == b"first "
    for piece in (b"second ", b"third"):
        stream.append(piece)
    stream.finish()
    assert b"".join(stream.read()) == b"first second third"
    assert b"".join(slow) == b"second third"


def test_a_reader_waits_for_bytes_that_come_later(stream):
    found = []
    reader = threading.Thread(target=lambda: found.append(b"".join(stream.read())))
    reader.start()
    stream.append(b"late")
    stream.finish()
    reader.join()
    assert found == [b"late"]


def test_a_failure_reaches_readers_in_the_middle(stream):
    stream.append(b"some")
    reader = stream.read()
    next(reader)
    stream.fail(ExpansionError("the source broke"))
    with pytest.raises(ExpansionError, match="the source broke"):
        next(reader)


def test_a_maker_from_whom_nothing_comes_is_given_up_and_told():
    stream = SharedStream(stalled=0.01)
    with pytest.raises(ExpansionError, match=r"no byte was made for 0\.01 s"):
        list(stream.read())
    with pytest.raises(ExpansionError, match="no byte"):
        stream.append(b"at last")
    stream.close()


def test_a_full_disk_ends_the_expansion_with_a_reason(stream, monkeypatch):
    class Full:
        def seek(self, place):
            pass

        def write(self, piece):
            raise OSError(errno.ENOSPC, "no space left on device")

        def close(self):
            pass

    monkeypatch.setattr(stream, "_file", Full())
    with pytest.raises(ExpansionError, match="cannot be kept for their readers: no space left"):
        stream.append(b"x")
