"""The file shim keeps the contract of shims."""

import os
from pathlib import Path

import pytest

from sluice_motifs.expansion.opening import ExpansionConfig, Openings
from sluice_motifs.storage.leases import LocalLeases
from sluice_motifs.storage.records import Record
from sluice_motifs.testing.shim_suite import ShiftedCopy, ShimContract
from sluice_motifs_fs.storage.paths import SourceFolder
from sluice_motifs_fs.storage.shim import FileShim
from sluice_motifs_fs.storage.stored_files import StoredFiles
from sluice_motifs_fs.storage.tracking import FileTracker


class FolderStorage:
    """Writes the way a mount does."""

    def __init__(self, path: Path):
        self._path = path
        self._folder = SourceFolder(path)
        self._tracker = FileTracker()
        self._files = StoredFiles(self._folder, self._tracker)
        list(self._files.recover())
        self.shim = FileShim(self._files, self._folder, self._tracker, self._read)
        templates = {ShiftedCopy.info.keyword: ShiftedCopy}
        self._openings = Openings(
            self.shim, LocalLeases(), templates, config=ExpansionConfig(spawn=self.shim.pinning.spawn)
        )

    def put(self, name, content):
        path = self._path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        file = os.open(path, os.O_CREAT | os.O_RDWR)
        try:
            with self._files.changing(file):
                os.ftruncate(file, 0)
                os.write(file, content)
            self._tracker.file(os.fstat(file).st_ino).end_write(file)
        finally:
            os.close(file)

    def delete(self, name):
        (self._path / name).unlink()

    def attach(self, name, record: Record):
        assert self.shim.annotate(self.shim.view(name), record)

    def _read(self, name, chain):
        opened = self._openings.open(name, chain)
        try:
            yield from opened.read() if opened.expansion is not None else self.shim.own_bytes(opened.view)
        finally:
            opened.close()

    def close(self):
        self._folder.close()


class TestFileShim(ShimContract):
    placement = ""

    @pytest.fixture
    def storage(self, tmp_path):
        storage = FolderStorage(tmp_path)
        yield storage
        storage.close()
