"""After any sequence of changes, look-ups equal those of a naive reference, and the snapshot equals a loaded one.

A group is replaced as a whole, or one member is added or removed: both have the same result.
"""

from dataclasses import dataclass, field, replace

from hypothesis import given, settings
from hypothesis import strategies as st

from sluice_core.messages.policies import Change, Target
from sluice_core.messages.predicate import Facts
from sluice_core.messages.registry import Group, Placement, Term, groups
from sluice_core.snapshot.keys import SNAPSHOT_META_KEY
from sluice_core.snapshot.reader import SnapshotReader, SnapshotWriter
from sluice_core.snapshot.records import STAMP, is_record
from sluice_core.store.records import FullState
from sluice_core.testing import assignment, target_of

ACCOUNTS = ("AUTH_a", "AUTH_b", "AUTH_c")
CONTAINERS = ("AUTH_a/x", "AUTH_a/y", "AUTH_b/x")
PATHS = [f"{account}/{container}/{name}" for account in ACCOUNTS for container in "xy" for name in "op"]
TARGETS = (
    *((target_of(path), "") for path in ("AUTH_a", "AUTH_b", "AUTH_a/x", "AUTH_a/x/o", "")),
    *((Target(level, "all"), "") for level in ("tenant", "container", "object")),
    (Target("tenant", "all"), "AUTH_b"),
    (Target("tenant", "group", "g"), ""),
    (Target("tenant", "group", "h"), ""),
    (Target("container", "group", "g"), ""),
    (Target("tenant", "group", "g"), "AUTH_a"),
    (Target("container", "group", "g"), "AUTH_a/x"),
)
IDS = tuple(f"p{number}.0" for number in range(6))


@dataclass
class Truth:
    """The committed changes, and the assignments that the node refuses; ``holds`` is the reference."""

    assignments: dict = field(default_factory=dict)
    entries: dict = field(default_factory=dict)
    refused: frozenset = frozenset()
    epoch: int = 0

    def loaded(self):
        return FullState("h", self.epoch, tuple(self.assignments.values()), entries=tuple(self.entries.values()))

    def judge(self, one):
        return "no" if one.id in self.refused else ""

    def take(self, change):
        for names, values, where in (
            (change.drops, change.puts, self.assignments),
            (change.entry_drops, change.entries, self.entries),
        ):
            for name in names:
                where.pop(name, None)
            for one in values:
                where[one.id if where is self.assignments else one.key] = one

    def members(self, level, name):
        found = groups(self.entries, "group" if level == "tenant" else "container_group", name).get(name)
        return () if found is None else found.members

    def holds(self, one, path):
        target = one.target
        here = "/".join(path.split("/")[: {"tenant": 1, "container": 2}.get(target.level, 3)])
        if one.member:
            return one.member == here
        if target.select == "group":
            return here in self.members(target.level, target.name)
        return target.select == "all" or target.name == here

    def ids(self, path):
        return {one.id for one in self.assignments.values() if one.id not in self.refused and self.holds(one, path)}

    def placement(self, account):
        entry = self.entries.get(f"placement/{account}")
        return "" if entry is None else Placement.read(entry).storage_policy


def group_parts(level, members):
    name, one = st.sampled_from("gh"), st.sampled_from(members)
    everybody = Group("", level, tuple(members))

    def anew(name, some):
        puts, drops = Group(name, level, tuple(some)).changes_from(replace(everybody, name=name))
        return {"entries": puts, "entry_drops": drops}

    def comes(name, one):
        return {"entries": Group(name, level, (one,)).entries()}

    def goes(name, one):
        group = Group(name, level)
        puts, drops = group.changes_from(replace(group, members=(one,)))
        return {"entries": puts, "entry_drops": drops}

    def gone(name):
        puts, drops = Group(name, level).changes_from(replace(everybody, name=name))
        return {"entry_drops": (puts[0].key, *drops)}

    lists = st.builds(anew, name, st.lists(one, max_size=4))
    return st.one_of(lists, st.builds(comes, name, one), st.builds(goes, name, one), name.map(gone))


def put(name, where):
    # each has its own kind, so that none hides another
    return {"puts": (assignment(name, target=where[0], member=where[1], kind=name),)}


accounts = st.sampled_from(ACCOUNTS)
parts = st.one_of(
    st.builds(put, st.sampled_from(IDS), st.sampled_from(TARGETS)),
    st.sampled_from(IDS).map(lambda name: {"drops": (name,)}),
    group_parts("tenant", ACCOUNTS),
    group_parts("container", CONTAINERS),
    st.builds(lambda name, to: {"entries": (Placement(name, to).entry(),)}, accounts, st.sampled_from(["gold", "ec"])),
    accounts.map(lambda name: {"entry_drops": (f"placement/{name}",)}),
    st.just({"entries": (Term("DOCS", ("pdf",)).entry(),)}),
)


def merged(some):
    names = {name for one in some for name in one}
    return Change(0, "h", 0.0, **{name: tuple(item for one in some for item in one.get(name, ())) for name in names})


changes = st.lists(parts, min_size=1, max_size=3).map(merged)
steps = st.lists(
    st.one_of(
        st.lists(changes, min_size=1, max_size=3),
        st.lists(changes, min_size=1, max_size=3),
        st.lists(changes, min_size=1, max_size=3).map(tuple),
        st.sampled_from(["restart", "reload", "rebuild"]),
        st.frozensets(st.sampled_from(IDS), max_size=2),
    ),
    max_size=8,
)


class Node:
    """A writer, a long-lived reader, and the reference."""

    def __init__(self, folder):
        self.folder = folder
        self.truth = Truth()
        self.writer = SnapshotWriter(folder, boot="boot1")
        self.writer.open()
        self.writer.reload(self.truth.loaded())
        self.reader = SnapshotReader(folder, boot="boot1")
        self.reader.refresh()

    def play(self, step):
        """A list is applied, a tuple was missed and is loaded, a set is refused from now on."""
        if isinstance(step, list | tuple):
            batch = [replace(one, epoch=self.truth.epoch + number) for number, one in enumerate(step, 1)]
            for one in batch:
                self.truth.take(one)
            self.truth.epoch = batch[-1].epoch
            if isinstance(step, list):
                self.writer.apply(batch, self.truth.judge)
            else:
                self.writer.reload(self.truth.loaded(), self.truth.judge)
        elif isinstance(step, frozenset):
            self.truth.refused = step
            self.writer.rejudge(self.truth.judge)
        elif step == "reload":
            self.writer.reload(self.truth.loaded(), self.truth.judge)
        else:
            self.writer.close()
            if step == "rebuild":
                (self.folder / "current").unlink()
            self.writer.open()
            if step == "rebuild":
                assert self.writer.reload(self.truth.loaded(), self.truth.judge)
                self.reader.refresh()

    def check(self):
        truth, reader = self.truth, self.reader
        for path in PATHS:
            assert set(reader.find(*path.split("/")).resolve(Facts("PUT"))) == truth.ids(path), path
        assert {name: reader.placement(name) for name in ACCOUNTS} == {name: truth.placement(name) for name in ACCOUNTS}
        assert reader.problem == ""
        kept = {one.id: one for one in self.writer.assignments()}
        assert kept == truth.assignments
        assert self.writer.refused == dict.fromkeys(truth.refused & truth.assignments.keys(), "no")
        assert self.writer.count == len(truth.assignments) - len(self.writer.refused)
        assert not self.writer.incomplete

    def close(self):
        self.reader.close()
        self.writer.close()


def contents(writer):
    with writer._environment.begin() as transaction:
        pairs = [(key, value) for key, value in transaction.cursor() if key != SNAPSHOT_META_KEY]
    return {key: value[STAMP:] if is_record(key) else value for key, value in pairs}


@settings(max_examples=150, deadline=None)
@given(steps)
def test_a_history_of_changes_ends_like_a_load_of_what_it_leads_to(tmp_path_factory, steps):
    folder = tmp_path_factory.mktemp("snapshots")
    node = Node(folder / "followed")
    anew = SnapshotWriter(folder / "anew", boot="boot1")
    try:
        for step in steps:
            node.play(step)
            node.check()
        anew.open()
        anew.reload(node.truth.loaded(), node.truth.judge)
        assert contents(node.writer) == contents(anew)
    finally:
        node.close()
        anew.close()
