"""Spaces over a storage in memory, step by step."""

import itertools
import math
import queue
import threading

import pytest

from sluice_core.messages.elasticity import Membership, Space, SpacePart
from sluice_motifs.runtime import Runtime
from sluice_motifs.space.controller import SpaceController
from sluice_motifs.space.keeper import SpaceConfig
from sluice_motifs.storage.leases import LocalLeases
from sluice_motifs.templates.registry import load_templates
from sluice_motifs.testing.memory_shim import MemoryShim

SIZE = 100


class Rules:
    """Implements ``SpaceRules``; items are named ``container/name``."""

    def __init__(self, target=10**6, **more):
        self.version = 0
        self.space = Space("a", "tenant", target, **more)
        self.parts = {}

    def set(self, **changes):
        self.space = Space(**{name: changes.get(name, getattr(self.space, name)) for name in
                              ("path", "level", "target_size", "policy", "min_age", "verify")})  # fmt: skip
        self.version += 1

    def refresh(self):
        return self.version

    def container(self, item):
        return item.partition("/")[0]

    def membership(self, container):
        if container == "elsewhere":
            return None
        return Membership(self.space, self.parts.get(container, SpacePart("a")))


class Cluster:
    """One storage, and a daemon with its runtime."""

    def __init__(self, rules, leases=None, shim=None, **more):
        self.shim = shim or MemoryShim(self.read)
        self.leases = leases or LocalLeases()
        self.runtime = Runtime(self.shim, self.leases, load_templates())
        self.now = 1000.0
        self.suspended = ""
        self.in_use = set()
        self.told, self.reports = [], []
        config = SpaceConfig(
            guard=lambda: self.suspended,
            report=self.reports.append,
            report_event=lambda *event: self.told.append(event),
            clock=lambda: self.now,
            now=lambda: 1.7e9,
            in_use=lambda name: name in self.in_use,
            **more,
        )
        self.controller = SpaceController(self.runtime, rules, self.leases, "n1", config)
        self.runtime.items.watch(self.controller)

    def read(self, name, chain=()):
        opened = self.runtime.notify_open(name, chain)
        try:
            yield from self.shim.own_bytes(opened.view) if opened.expansion is None else opened.read()
        finally:
            self.runtime.notify_close(opened)

    def scan(self):
        self.runtime.restart()

    def put(self, *names):
        self.shim.put("elsewhere/source", b"x" * SIZE)
        for name in names:
            self.shim.put(name, b"x" * SIZE)
            self.runtime.attach_motif(name, self.runtime.create_motif("concat", {"of": "elsewhere/source"}))

    def lie(self, name, size):
        self.shim.put(name, b"y" * size)
        self.runtime.attach_motif(name, self.runtime.create_motif("concat", {"of": "elsewhere/source"}))

    def open(self, name):
        assert b"".join(self.read(name)) == b"x" * SIZE
        self.runtime.expand(name)  # which waits until the bytes are stored

    def settle(self):
        """Step until no job runs; return the last status."""
        for _ in range(50):
            while self.controller.process_event(0):
                pass
            self.controller.step()
            if not self.controller._keeper.jobs:
                return self.reports[-1][0] if self.reports else None
            while self.controller._keeper.jobs:
                assert self.controller.process_event(5)
        raise AssertionError("it never comes to rest")

    def contracted(self):
        return [name for name in self.runtime.items.names() if not self.runtime.statistics(name).expanded]


@pytest.fixture
def rules():
    return Rules()


@pytest.fixture
def cluster(rules):
    return Cluster(rules)


NAMES = [f"c/{number}" for number in range(10)]


def test_a_space_is_kept_at_its_target_and_what_was_read_last_stays(cluster, rules):
    cluster.put(*NAMES)
    assert cluster.settle().state == "kept"
    cluster.open("c/0")
    rules.set(target_size=4 * SIZE)
    status = cluster.settle()
    assert (status.used, status.contracted, status.items, status.contracted_items) == (4 * SIZE, 6 * SIZE, 4, 6)
    assert cluster.contracted() == [f"c/{number}" for number in range(1, 7)]
    assert status.state == "kept"
    assert [kind for kind, *_ in cluster.told] == ["motif_contracted"]


def test_reads_are_hits_or_expansions_and_cost_seconds(cluster, rules):
    cluster.put(*NAMES)
    rules.set(target_size=9 * SIZE)
    cluster.settle()
    (gone,) = cluster.contracted()
    cluster.open(gone)
    cluster.open("c/9")
    for name in ("c/8", "c/8", "none"):
        cluster.runtime.items.note_open(name, cluster.now)
    status = cluster.settle()
    assert (status.hits, status.misses, status.expansions) == (3, 1, 1)
    assert status.hit_rate == 0.75
    assert status.seconds_lost >= 0


def test_spare_space_is_filled_from_the_most_recent_contractions(cluster, rules):
    cluster.put(*NAMES)
    rules.set(target_size=2 * SIZE)
    cluster.settle()
    assert len(cluster.contracted()) == 8
    rules.set(target_size=6 * SIZE)
    assert cluster.settle().used == 2 * SIZE, "not before a scan"
    cluster.scan()
    status = cluster.settle()
    assert status.used == 5 * SIZE, "nine tenths of the target"
    gone = cluster.contracted()
    assert (len(gone), gone[:4]) == (5, NAMES[:4]), "four are contracted at once, and end in any order"
    assert status.expansions == 0
    rules.set(target_size=10**6)
    assert cluster.settle().contracted == 0


def test_what_is_contracted_by_hand_is_not_filled_before_it_is_read(cluster):
    cluster.put(*NAMES)
    cluster.scan()
    cluster.runtime.contract("c/3", "trust")
    assert cluster.settle().contracted == SIZE
    assert cluster.contracted() == ["c/3"]
    cluster.open("c/3")
    assert cluster.settle().contracted == 0


def test_while_somebody_does_not_know_motifs_nothing_is_contracted(cluster, rules):
    cluster.put(*NAMES)
    rules.set(target_size=0)
    cluster.suspended = "node `n2` does not know motifs"
    status = cluster.settle()
    assert (status.state, status.reason, status.contracted) == ("suspended", "node `n2` does not know motifs", 0)
    cluster.suspended = ""
    assert cluster.settle().contracted == 10 * SIZE


def test_young_items_and_those_that_must_stay_leave_a_space_above_its_target(cluster, rules):
    cluster.put("c/0", "c/1")
    cluster.shim.pinned["c/0"] = "it is a manifest"
    rules.set(target_size=0, min_age=60.0)
    status = cluster.settle()
    assert (status.state, status.reason) == ("above", "2 are younger than min_age")
    cluster.now += 61
    cluster.settle()
    status = cluster.settle()
    assert cluster.contracted() == ["c/1"]
    assert (status.state, status.reason) == ("above", "`c/0` is not contracted: it is a manifest")
    del cluster.shim.pinned["c/0"]
    cluster.now += 61
    assert cluster.settle().contracted == 2 * SIZE


def test_what_must_stay_is_judged_less_often_each_time_until_it_is_another(cluster, rules, monkeypatch):
    cluster.put("c/0")
    cluster.lie("c/0", SIZE)
    judged, contract = [], cluster.runtime.contract
    monkeypatch.setattr(cluster.runtime, "contract", lambda *given: (judged.append(cluster.now), contract(*given))[1])
    rules.set(target_size=0)
    for _ in range(240):
        cluster.settle()
        cluster.controller.closed("c/0")  # a reader each minute
        cluster.now += 60
    gaps = [after - before for before, after in itertools.pairwise(judged)]
    assert gaps[:8] == [60, 120, 240, 480, 960, 1920, 3600, 3600]
    cluster.lie("c/0", SIZE + 1)
    before = len(judged)
    cluster.settle()
    assert len(judged) == before + 1


def test_re_expansions_stop_contraction_and_say_so(cluster, rules):
    cluster.put(*NAMES)
    rules.set(target_size=5 * SIZE)
    cluster.settle()
    for name in cluster.contracted():  # each takes a second, of three that five minutes allow
        slot = cluster.runtime.items.slot(name)
        cluster.controller.made(slot, name, 1.0)
        cluster.open(name)
    status = cluster.settle()
    assert status.state == "thrashing"
    assert "re-expansions of what was contracted within 300 s took 5" in status.reason
    assert status.used > 5 * SIZE
    assert [kind for kind, *_ in cluster.told] == ["motif_contracted", "motif_thrashing"]


def test_what_the_owner_did_not_choose_is_not_held_against_its_target(cluster, rules):
    cluster.put(*NAMES)
    cluster.settle()
    for name in NAMES[:5]:  # as in the test before
        cluster.runtime.contract(name)
        cluster.settle()
        slot = cluster.runtime.items.slot(name)
        cluster.controller.made(slot, name, 1.0)
        cluster.open(name)
    rules.set(target_size=5 * SIZE)
    status = cluster.settle()
    assert (status.state, status.used, status.reason) == ("kept", 5 * SIZE, "")


def test_without_a_bound_a_target_is_kept_whatever_reads_cost(rules):
    cluster = Cluster(rules, share=math.inf)
    cluster.put(*NAMES)
    rules.set(target_size=5 * SIZE)
    cluster.settle()
    for name in cluster.contracted():
        slot = cluster.runtime.items.slot(name)
        cluster.controller.made(slot, name, 1000.0)
        cluster.open(name)
    status = cluster.settle()
    assert (status.state, status.used) == ("kept", 5 * SIZE)


def test_what_somebody_has_open_is_passed_over_and_goes_when_it_is_closed(cluster, rules):
    cluster.put(*NAMES)
    cluster.in_use = {"c/0", "c/1"}
    rules.set(target_size=SIZE)
    status = cluster.settle()
    assert (status.state, status.reason) == ("above", "2 are open")
    assert set(NAMES) - set(cluster.contracted()) == cluster.in_use
    cluster.in_use = {"c/0"}
    assert cluster.settle().state == "kept"
    assert set(NAMES) - set(cluster.contracted()) == cluster.in_use


def test_what_grows_above_its_target_is_contracted_before_the_next_look(cluster, rules):
    rules.set(target_size=5 * SIZE)
    cluster.put(*NAMES[:5])
    cluster.settle()
    cluster.put(*NAMES[5:])
    while len(cluster.contracted()) < 5:
        assert cluster.controller.process_event(5)
    cluster.settle()
    cluster.in_use = set(NAMES)
    rules.set(target_size=0)
    assert cluster.settle().state == "above"
    cluster.in_use.remove("c/9")
    cluster.controller.closed("c/9")
    while len(cluster.contracted()) < 6:
        assert cluster.controller.process_event(5)


def test_what_was_opened_when_it_was_judged_goes_when_it_is_closed(cluster, rules):
    cluster.put("c/0")
    cluster.shim.pinned["c/0"] = "it is open"
    rules.set(target_size=0)
    assert cluster.settle().reason == "`c/0` is not contracted: it is open"
    del cluster.shim.pinned["c/0"]
    assert cluster.settle().state == "above"
    cluster.controller.closed("c/0")
    assert cluster.settle().contracted == SIZE


def test_what_is_made_in_advance_and_cannot_be_stored_is_made_once(cluster, rules):
    cluster.put(*NAMES)
    rules.set(target_size=2 * SIZE)
    cluster.scan()
    cluster.settle()
    made = []
    cluster.runtime.expand = made.append
    rules.set(target_size=10**6)
    cluster.settle()
    assert sorted(made) == sorted(cluster.contracted())


def test_contractions_do_not_wait_for_refills(cluster, rules):
    cluster.put(*NAMES)
    rules.set(target_size=0)
    cluster.scan()
    cluster.settle()
    held = threading.Event()
    cluster.runtime.expand = lambda name: held.wait(60)
    rules.set(target_size=10**6)
    cluster.controller.step()
    assert len(cluster.controller._keeper.jobs) == 8
    cluster.put("c/new")
    rules.set(target_size=0)
    try:
        while len(cluster.contracted()) < 11:
            cluster.controller.step()
            assert cluster.controller.process_event(5)
    finally:
        held.set()
    cluster.settle()


def test_a_scan_that_ended_before_spaces_were_kept_lets_them_be_filled(cluster, rules):
    cluster.put(*NAMES)
    rules.set(target_size=0)
    cluster.settle()
    cluster.scan()
    later = Cluster(rules, LocalLeases(), cluster.shim)
    later.runtime.items._watchers.clear()
    later.scan()
    rules.set(target_size=10**6)
    later.runtime.items.watch(later.controller)
    assert later.settle().contracted == 0


def test_parts_share_the_target_by_floors_and_weights(cluster, rules):
    rules.parts = {"c": SpacePart("a/c", floor=3 * SIZE), "d": SpacePart("a/d")}
    cluster.put(*NAMES, *[f"d/{number}" for number in range(10)])
    rules.set(target_size=9 * SIZE)
    status = cluster.settle()
    assert {path: tuple(found) for path, found in status.parts.items()} == {
        "a/c": (6 * SIZE, 6 * SIZE), "a/d": (3 * SIZE, 3 * SIZE)
    }  # fmt: skip


def test_items_move_when_policies_do(cluster, rules):
    cluster.put(*NAMES, "d/0")
    assert cluster.settle().items == 11
    rules.parts = {"d": SpacePart("a/d", weight=2)}
    rules.set(target_size=10**6 + 1)
    assert set(cluster.settle().parts) == {"a", "a/d"}
    rules.space = Space("b", "tenant", 3 * SIZE)
    rules.parts = {}
    rules.version += 1
    status = cluster.settle()
    assert (status.path, status.items, status.contracted_items) == ("b", 3, 8)


def test_what_is_gone_counts_no_more(cluster):
    cluster.put(*NAMES)
    cluster.settle()
    cluster.shim.delete("c/0")
    cluster.runtime.notify_delete("c/0")
    assert cluster.settle().items == 9
    cluster.shim.delete("c/1")  # without a report
    cluster.scan()
    assert cluster.settle().items == 8


def test_one_daemon_keeps_a_space_and_another_one_takes_over(rules):
    time = [0.0]
    leases = LocalLeases(clock=lambda: time[0])
    one = Cluster(rules, leases)
    other = Cluster(rules, leases, one.shim)
    one.put(*NAMES)
    one.settle()
    other.scan()
    assert other.settle() is None
    rules.set(target_size=5 * SIZE)
    assert other.settle() is None
    assert one.contracted() == []
    time[0] = 11.0  # the first one is silent for longer than a lease lasts
    other.now += 11
    other.scan()
    assert other.settle().contracted_items == 5


def test_another_policy_takes_over_the_order(cluster, rules):
    cluster.put(*NAMES)
    cluster.settle()
    cluster.open("c/0")
    cluster.settle()
    rules.set(policy="s4lru", target_size=9 * SIZE)
    assert cluster.settle().policy == "s4lru"
    assert cluster.contracted() == ["c/1"]


def test_what_does_not_change_is_reported_every_few_seconds(cluster, rules):
    cluster.put(*NAMES)
    cluster.settle()
    cluster.controller.step()
    before = len(cluster.reports)
    for _ in range(8):
        cluster.now += 1
        cluster.controller.step()
    assert len(cluster.reports) == before + 1
    cluster.open("c/0")
    cluster.settle()
    assert len(cluster.reports) == before + 2


def test_it_runs_by_itself(rules):
    cluster = Cluster(rules)
    cluster.put(*NAMES)
    rules.space = Space("a", "tenant", 4 * SIZE)
    reports = queue.SimpleQueue()
    config = SpaceConfig(report=reports.put)
    controller = SpaceController(cluster.runtime, rules, LocalLeases(), "n1", config)
    controller.start()
    try:
        for _ in range(20):
            found = reports.get(timeout=5)
            if found and found[0].used == 4 * SIZE:
                break
        assert found[0].contracted == 6 * SIZE
        assert controller.space_of("c/0")["path"] == "a"
    finally:
        controller.stop()
