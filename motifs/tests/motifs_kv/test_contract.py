"""The key-value shim keeps the contract of shims."""

import pytest

from sluice_motifs.storage.records import Record
from sluice_motifs.testing.shim_suite import ShiftedCopy, ShimContract
from sluice_motifs_kv.shim import DatabaseShim, plain_of
from sluice_motifs_kv.store import Change, Entry, Store, item_key


class KeyValueStorage:
    """Writes the way ``Database`` does, without a limit."""

    def __init__(self, path):
        self._store = Store(path, {}, lambda change: None)
        self._store.open()
        templates = {ShiftedCopy.info.keyword: ShiftedCopy}
        self.shim = DatabaseShim(self._store, templates, lambda size: True)

    def put(self, name, content):
        entry = Entry(self._store.new_version(), len(content))
        self._store.write([Change(item_key(name), entry, content)])

    def delete(self, name):
        self._store.write([Change(item_key(name))])

    def attach(self, name, record: Record):
        seen = self.shim.view(name)
        content = self.shim.value(seen)
        assert self.shim.swap(name, seen, record, plain_of(seen.plain.version, content), content)

    def close(self):
        self._store.close()


class TestKeyValueShim(ShimContract):
    @pytest.fixture
    def storage(self, tmp_path):
        storage = KeyValueStorage(tmp_path / "db")
        yield storage
        storage.close()
