"""The content of sources is held while clients write them."""

import os
import threading

import pytest

from sluice_motifs_fs.storage import tracking
from sluice_motifs_fs.storage.paths import SourceFolder
from sluice_motifs_fs.storage.stored_files import StoredFiles
from sluice_motifs_fs.storage.tracking import FileTracker, Pinning


class Folder:
    """A folder with a source that is open for writing."""

    def __init__(self, path):
        (path / "source").write_bytes(b"old content")
        self._folder = SourceFolder(path)
        self._tracker = FileTracker()
        self.files = StoredFiles(self._folder, self._tracker)
        list(self.files.recover())
        self.pinning = Pinning(self._folder, self._tracker, self.files.find)
        self.file = os.open(path / "source", os.O_RDWR)
        self.tracked = self._tracker.file(os.fstat(self.file).st_ino)

    def write(self, content):
        with self.files.changing(self.file):
            os.pwrite(self.file, content, 0)

    def version(self):
        return self.files.find("source").plain.version

    def close(self):
        os.close(self.file)
        self._folder.close()


@pytest.fixture
def folder(tmp_path):
    folder = Folder(tmp_path)
    yield folder
    folder.close()


def test_a_file_shows_its_old_version_until_it_is_settled(folder):
    versions = [folder.version()]
    folder.write(b"new")
    assert folder.version() == versions[0]
    folder.tracked.end_write(folder.file)
    versions.append(folder.version())
    for _ in range(3):  # within one tick of the clock, and of the same size
        folder.write(b"new")
        folder.tracked.end_write(folder.file)
        versions.append(folder.version())
    assert len(set(versions)) == 5


def test_what_is_pinned_stays_and_is_seen_by_its_expansion_alone(folder):
    pins = folder.pinning.pin(frozenset({"source", "missing"}))
    folder.write(b"new")
    folder.tracked.end_write(folder.file)
    with folder.pinning.reading(pins):
        pin = folder.pinning.find("source")
        assert b"".join(pin.read()) == b"old content"
        assert pin.view.plain.version != folder.version()
    assert folder.pinning.find("source") is None
    folder.write(b"again")
    assert b"".join(pin.read()) == b"old content"
    pins.release()
    assert not folder.tracked.pins


def test_a_pin_waits_until_a_file_is_settled(folder, monkeypatch):
    monkeypatch.setattr(tracking, "QUIET", 60.0)
    monkeypatch.setattr(tracking, "PATIENCE", 60.0)
    folder.write(b"new")
    found = []
    waiting = threading.Thread(target=lambda: found.append(folder.pinning.pin(frozenset({"source"}))))
    waiting.start()
    assert not found
    folder.tracked.end_write(folder.file)
    waiting.join()
    assert b"".join(found[0].found["source"].read()) == b"new content"
    found[0].release()


@pytest.mark.parametrize("limit", ["QUIET", "PATIENCE"])
def test_a_pin_takes_what_is_there_after_a_while(folder, monkeypatch, limit):
    monkeypatch.setattr(tracking, limit, 0.01)
    folder.write(b"new")
    before = folder.version()
    pins = folder.pinning.pin(frozenset({"source"}))
    assert pins.found["source"].view.plain.version == folder.version() != before
    pins.release()
