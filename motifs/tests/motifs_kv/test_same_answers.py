"""A database with motifs answers like a plain LevelDB in which the application updates all derived values itself."""

import itertools
import tempfile
from contextlib import nullcontext
from pathlib import Path

import plyvel
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from sluice_motifs.api import NotContractible
from sluice_motifs.contraction.preparation import VERIFICATIONS
from sluice_motifs.storage.records import Motif
from sluice_motifs.testing.shim_suite import ShiftedCopy, shifted
from sluice_motifs_kv.database import Database
from sluice_motifs_kv.store import item_name

#: Each key may be derived from those before it, so that there are chains and no cycles; some are prefixes of others.
KEYS = (b"a", b"aa", b"b", b"\x00", "ü".encode())
KEY = st.sampled_from(KEYS)
VALUE = st.binary(max_size=40)
BOUND = st.none() | st.binary(max_size=2) | KEY
LIMIT = st.sampled_from([None, 0, 1, 30, 80, 10**18])


class DatabaseMachine(RuleBasedStateMachine):
    """Sluice's database beside plyvel's; ``sources`` has the source of each derived key."""

    def __init__(self):
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.plain = plyvel.DB(str(Path(self.folder.name) / "plain"), create_if_missing=True)
        self.sources = {}
        self.snapshots = []

    @initialize(limit=LIMIT, policy=st.sampled_from(["lru", "clock", "random"]), length=st.integers(1, len(KEYS)))
    def begin(self, limit, policy, length):
        """Start with a chain of this many keys, each derived from the one before."""
        self.policy = policy
        self.database = self.opened(limit)
        self.put(KEYS[0], b"first")
        for source, key in itertools.pairwise(KEYS[:length]):
            self.attach(source, key, False)

    def opened(self, limit):
        path = Path(self.folder.name) / "motifs"
        return Database(path, [ShiftedCopy], limit=limit, policy=self.policy).open()

    def derive(self):
        """Update all derived values of the plain database, as its application would."""
        for key in KEYS:
            if key in self.sources:
                self.plain.put(key, shifted(self.plain.get(self.sources[key])))

    def deletable(self, key):
        return key not in self.sources.values()

    @rule(key=KEY, value=VALUE)
    def put(self, key, value):
        self.database.put(key, value)
        self.plain.put(key, value)
        self.sources.pop(key, None)
        self.derive()

    @rule(key=KEY)
    def delete(self, key):
        if self.deletable(key):
            self.database.delete(key)
            self.plain.delete(key)
            self.sources.pop(key, None)

    @rule(writes=st.lists(st.tuples(KEY, st.none() | VALUE), max_size=6))
    def write_batch(self, writes):
        writes = [(key, value) for key, value in writes if value is not None or self.deletable(key)]
        with self.database.write_batch() as ours, self.plain.write_batch() as theirs:
            for key, value in writes:
                for batch in (ours, theirs):
                    batch.delete(key) if value is None else batch.put(key, value)
                self.sources.pop(key, None)
        self.derive()

    @rule(source=KEY, key=KEY, written=st.booleans())
    def attach(self, source, key, written):
        """Attach a motif to a value that the client has written, or to one that the motif makes."""
        value = self.plain.get(source)
        if KEYS.index(source) >= KEYS.index(key) or value is None or key in self.sources:
            return
        motif = Motif("shifted_copy", {"of": item_name(source)})
        if written or self.plain.get(key) is not None:
            self.put(key, shifted(value))
            self.database.attach(key, motif)
        else:
            assert self.database.get_or_make(key, motif) == shifted(value)
        self.sources[key] = source
        self.derive()

    @precondition(lambda self: self.sources)
    @rule(data=st.data())
    def detach(self, data):
        key = data.draw(st.sampled_from(sorted(self.sources)))
        self.database.detach(key, "shifted_copy")
        del self.sources[key]

    @precondition(lambda self: self.sources)
    @rule(data=st.data(), verify=st.sampled_from(VERIFICATIONS))
    def contract(self, data, verify):
        key = data.draw(st.sampled_from(sorted(self.sources)))
        value = self.database.get(key)  # a stale value is not contracted
        with nullcontext() if value else pytest.raises(NotContractible, match="it is empty"):
            self.database.contract(key, verify)

    @rule(limit=LIMIT)
    def set_limit(self, limit):
        self.database.set_limit(limit)

    @rule(key=KEY)
    def get(self, key):
        assert self.database.get(key) == self.plain.get(key)
        assert self.database.get(key, b"default") == self.plain.get(key, b"default")

    @rule(start=BOUND, stop=BOUND, include_start=st.booleans(), include_stop=st.booleans(), reverse=st.booleans())
    def iterate_over_a_range(self, **bounds):
        self.compare(self.database, self.plain, bounds)

    @rule(prefix=BOUND, reverse=st.booleans())
    def iterate_over_a_prefix(self, **bounds):
        self.compare(self.database, self.plain, bounds)

    @rule()
    def take_a_snapshot(self):
        self.snapshots.append((self.database.snapshot(), self.plain.snapshot()))

    @precondition(lambda self: self.snapshots)
    @rule(reverse=st.booleans())
    def read_a_snapshot(self, reverse):
        ours, theirs = self.snapshots[0]
        self.compare(ours, theirs, {"reverse": reverse})
        assert [ours.get(key) for key in KEYS] == [theirs.get(key) for key in KEYS]

    @rule(limit=LIMIT)
    def open_again(self, limit):
        self.snapshots.clear()
        self.database.close()
        self.database = self.opened(limit)

    def compare(self, ours, theirs, bounds):
        for include in ({}, {"include_value": False}, {"include_key": False}):
            assert list(ours.iterator(**bounds, **include)) == list(theirs.iterator(**bounds, **include))

    def teardown(self):
        try:
            self.compare(self.database, self.plain, {})
        finally:
            self.snapshots.clear()
            self.database.close()
            self.plain.close()
            self.folder.cleanup()


TestDatabase = DatabaseMachine.TestCase
TestDatabase.settings = settings(max_examples=40, stateful_step_count=30, deadline=None)
