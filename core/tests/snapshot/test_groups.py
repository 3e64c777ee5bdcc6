"""Policies on groups and placements, as a node's snapshot stores them and readers find them."""

import logging

import pytest

from sluice_core.messages.policies import Change, Entry, Target
from sluice_core.messages.predicate import Facts
from sluice_core.messages.registry import Group, Placement, Term
from sluice_core.resolve import Candidates
from sluice_core.snapshot import candidates
from sluice_core.snapshot.keys import SNAPSHOT_REGISTRY_KEY
from sluice_core.snapshot.reader import SnapshotReader, SnapshotWriter
from sluice_core.store.records import FullState
from sluice_core.testing import assignment

FACTS = Facts("PUT", size=10)
GOLD = Target("tenant", "group", "gold")
LOGS = Target("container", "group", "logs")


def change(epoch, *puts, **more):
    return Change(epoch, "h", 0.0, puts=puts, **more)


def gold(*members):
    return Group("gold", members=members).entries()


def logs(*members):
    return Group("logs", "container", members).entries()


def named_anew(*members, of=("AUTH_a", "AUTH_b")):
    """A group that had the members ``of``, and now has only ``members``."""
    puts, drops = Group("gold", members=members).changes_from(Group("gold", members=of))
    return {"entries": puts, "entry_drops": drops}


def gone(name, *members):
    puts, drops = Group(name).changes_from(Group(name, members=members))
    return (puts[0].key, *drops)


@pytest.fixture
def writer(tmp_path):
    writer = SnapshotWriter(tmp_path / "snapshot", boot="boot1")
    writer.open()
    writer.reload(FullState("h", 0, ()))
    yield writer
    writer.close()


@pytest.fixture
def found(writer):
    """Ids of the filters for a path, in running order."""
    reader = SnapshotReader(writer.folder, boot="boot1")
    reader.refresh()

    def find(path):
        pipelines = reader.find(*path.split("/", 2)).resolve(FACTS)
        assert reader.problem == ""
        return [one.id for one in pipelines.get("filter", ())]

    find.reader = reader
    yield find
    reader.close()


def test_members_that_join_later_are_included_and_those_who_leave_are_not(writer, found):
    writer.apply([change(1, assignment("g.0", target=GOLD), entries=gold("AUTH_a"))])
    assert (found("AUTH_a/c/o"), found("AUTH_b/c/o")) == (["g.0"], [])
    writer.apply([change(2, entries=gold("AUTH_a", "AUTH_b"))])
    assert (found("AUTH_a/c/o"), found("AUTH_b/c/o")) == (["g.0"], ["g.0"])
    writer.apply([change(3, **named_anew("AUTH_b"))])
    assert (found("AUTH_a/c/o"), found("AUTH_b/c/o")) == ([], ["g.0"])


def test_an_assignment_comes_into_force_for_members_already_looked_up(writer, found):
    writer.apply([change(1, entries=gold("AUTH_a"))])
    assert found("AUTH_a/c/o") == []
    writer.apply([change(2, assignment("g.0", target=GOLD))])
    assert found("AUTH_a/c/o") == ["g.0"]
    writer.apply([change(3, assignment("g.0", target=GOLD, keyword="other"))])
    assert found.reader.find("AUTH_a").keywords == {"other"}
    writer.apply([change(4, drops=("g.0",))])
    assert found("AUTH_a/c/o") == []
    assert writer.count == 0


def test_the_assignments_of_an_unknown_group_wait_for_it(writer, found):
    writer.apply([change(1, assignment("g.0", target=GOLD))])
    assert (writer.refused, writer.count, found("AUTH_a/c/o")) == ({}, 1, [])
    writer.apply([change(2, entries=gold("AUTH_a"))])
    assert found("AUTH_a/c/o") == ["g.0"]
    writer.apply([change(3, entry_drops=gone("gold", "AUTH_a"))])
    assert (writer.refused, writer.count, found("AUTH_a/c/o")) == ({}, 1, [])


def test_groups_of_tenants_and_of_containers_may_have_one_name(writer, found):
    both = (*Group("logs", members=("AUTH_a",)).entries(), *logs("AUTH_b/c"))
    tenants = assignment("t.0", target=Target("tenant", "group", "logs"))
    writer.apply([change(1, tenants, assignment("c.0", target=LOGS), entries=both)])
    assert (found("AUTH_a/c/o"), found("AUTH_b/c/o"), found("AUTH_b/d/o")) == (["t.0"], ["c.0"], [])


def test_a_member_of_several_groups_has_what_all_of_them_have(writer, found):
    silver = Group("silver", members=("AUTH_a", "AUTH_b")).entries()
    other = assignment("s.0", target=Target("tenant", "group", "silver"), keyword="other", stage=900)
    writer.apply([change(1, assignment("g.0", target=GOLD), other, entries=(*gold("AUTH_a"), *silver))])
    assert (found("AUTH_a/c/o"), found("AUTH_b/c/o")) == (["g.0", "s.0"], ["s.0"])
    writer.apply([change(2, entry_drops=gone("silver", "AUTH_a", "AUTH_b"))])
    assert (found("AUTH_a/c/o"), found("AUTH_b/c/o")) == (["g.0"], [])


NARROW_TO_WIDE = (
    ("AUTH_a/c/o", None),
    ("AUTH_a/c", None),
    ("", LOGS),
    ("", Target("container", "all")),
    ("AUTH_a", None),
    ("", GOLD),
    ("", Target("tenant", "all")),
    ("", None),
)


@pytest.mark.parametrize("left", range(len(NARROW_TO_WIDE), 0, -1))
def test_a_group_is_wider_than_a_name_and_narrower_than_all(writer, found, left):
    some = NARROW_TO_WIDE[-left:]
    puts = [assignment(f"p{number}.0", path, target=target) for number, (path, target) in enumerate(some)]
    writer.apply([change(1, *puts, entries=(*gold("AUTH_a"), *logs("AUTH_a/c")))])
    assert found("AUTH_a/c/o") == ["p0.0"]


def test_an_actor_fires_for_one_member_and_keeps_the_rank_of_the_group(writer, found):
    fired = assignment("g.0@AUTH_a", target=GOLD, member="AUTH_a")
    writer.apply([change(1, fired, assignment("all.0", target=Target("tenant", "all")))])
    writer.apply([change(2, entries=gold("AUTH_a", "AUTH_b"))])
    assert (found("AUTH_a/c/o"), found("AUTH_b/c/o")) == (["g.0@AUTH_a"], ["all.0"])


def test_what_a_node_refuses_comes_into_force_for_all_members_when_it_can(writer, found):
    writer.apply([change(1, assignment("g.0", target=GOLD), entries=gold("AUTH_a"))], lambda one: "not yet")
    assert (writer.refused, found("AUTH_a/c/o")) == ({"g.0": "not yet"}, [])
    assert writer.rejudge(lambda one: "") == 1
    assert found("AUTH_a/c/o") == ["g.0"]


def test_what_was_missed_and_is_loaded_reaches_members_already_looked_up(writer, found):
    writer.apply([change(1, assignment("g.0", target=GOLD), entries=gold("AUTH_a"))])
    assert found("AUTH_a/c/o") == ["g.0"]
    writer.reload(FullState("h", 9, (assignment("n.0", target=GOLD),), entries=gold("AUTH_a")))
    assert found("AUTH_a/c/o") == ["n.0"]


def test_a_restarted_writer_knows_who_was_a_member(writer, found):
    writer.apply([change(1, assignment("g.0", target=GOLD), entries=gold("AUTH_a", "AUTH_b"))])
    writer.close()
    writer.open()
    writer.apply([change(2, **named_anew("AUTH_b"))])
    assert (found("AUTH_a/c/o"), found("AUTH_b/c/o")) == ([], ["g.0"])
    assert [one.id for one in writer.assignments()] == ["g.0"]


def test_a_snapshot_of_an_agent_that_kept_no_groups_is_incomplete_until_loaded(writer, found):
    writer.apply([change(1, assignment("p.0", "AUTH_b"))])
    with writer._environment.begin(write=True) as transaction:
        transaction.delete(SNAPSHOT_REGISTRY_KEY)
    writer.close()
    assert writer.open().epoch == 1
    assert writer.incomplete
    group = assignment("g.0", target=GOLD)
    assert writer.reload(FullState("h", 1, (group,), entries=gold("AUTH_a"))) is False
    assert not writer.incomplete
    assert (found("AUTH_a/c/o"), found("AUTH_b/c/o")) == (["g.0"], [])


def test_a_change_of_one_member_writes_one_record(writer):
    everybody = [f"AUTH_{number}" for number in range(50)]
    puts = [assignment(f"g{number}.0", target=GOLD, keyword=f"k{number}") for number in range(5)]
    writer.apply([change(1, *puts, entries=gold(*everybody))])
    before = _stamps(writer)
    writer.apply([change(2, **named_anew(*everybody, "AUTH_new", of=everybody))])
    assert {key for key, stamp in _stamps(writer).items() if before.get(key) != stamp} == {b"t/AUTH_new"}
    before = _stamps(writer)
    writer.apply([change(3, assignment("g1.0", target=GOLD, keyword="other"))])
    changed = {key for key, stamp in _stamps(writer).items() if before.get(key) != stamp}
    assert changed == {b"g/tenant/gold", b"*"}


def _stamps(writer):
    with writer._environment.begin() as transaction:
        return {key: value[:8] for key, value in transaction.cursor() if key[:2] in (b"t/", b"g/", b"*")}


def test_members_with_the_same_policies_share_one_answer(writer, found):
    writer.apply([change(1, assignment("g.0", target=GOLD), entries=gold("AUTH_a", "AUTH_b", "AUTH_c"))])
    writer.apply([change(2, assignment("c.0", "AUTH_c", keyword="own"))])
    reader = found.reader
    assert reader.find("AUTH_a", "c", "o") is reader.find("AUTH_b", "c", "o")
    assert reader.find("AUTH_c", "c", "o") is not reader.find("AUTH_b", "c", "o")


def test_an_answer_is_the_same_one_before_and_after_the_cache_was_full(writer, found, monkeypatch):
    monkeypatch.setattr(candidates, "MOST", 4)
    writer.apply([change(1, *(assignment(f"p{number}.0", f"AUTH_{number}") for number in range(20)))])
    for number in range(20):
        first = found.reader.find("AUTH_0", "c", "o")
        assert found(f"AUTH_{number}/c/o") == [f"p{number}.0"]
        assert found.reader.find("AUTH_0", "d", "p") is first


def test_nothing_is_shown_to_a_reader_but_assignments(writer, found):
    found.reader.refresh()
    writer.apply([change(1, entries=(*gold("AUTH_a"), Term("DOCS", ("pdf",)).entry()))])
    assert isinstance(found.reader.find("AUTH_a", "c", "o"), Candidates)
    assert (writer.assignments(), writer.count, found("AUTH_a/c/o")) == ([], 0, [])


def test_a_container_group_holds_for_its_containers_only(writer, found):
    writer.apply([change(1, assignment("c.0", target=LOGS), entries=logs("AUTH_a/c"))])
    assert (found("AUTH_a/c/o"), found("AUTH_a/cc/o"), found("AUTH_a/d/c")) == (["c.0"], [], [])


def test_names_longer_than_a_key_are_told_apart(writer, found):
    long = "AUTH_" + "x" * 600
    group = Group("g" * 600, members=(f"{long}1",)).entries()
    writer.apply([change(1, assignment("g.0", target=Target("tenant", "group", "g" * 600)), entries=group)])
    assert (found(f"{long}1/c/o"), found(f"{long}2/c/o")) == (["g.0"], [])


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        (Entry("group", "gold", {"members": "AUTH_b"}), ""),
        (Entry("tenant_member", "gold", {}), ""),
        (Entry("tenant_member", "gold/AUTH_b\ud800", {}), "left out"),
        (Entry("tenant_member", "gold\ud800/AUTH_b", {}), "left out"),
        (Entry("placement", "AUTH_a", {"storage_policy": 7}), "left out"),
        (Entry("placement", "AUTH_a", {"storage_policy": "\ud800"}), "left out"),
        (Entry("placement", "AUTH_a", {}), ""),
    ],
)
def test_entries_that_make_no_sense_are_logged_and_do_no_harm(writer, found, caplog, entry, said):
    group = assignment("g.0", target=GOLD)
    writer.apply([change(1, group, assignment("p.0", "AUTH_b", keyword="own"), entries=(entry,))])
    assert said in caplog.text
    assert (found("AUTH_b/c/o"), found.reader.placement("AUTH_a")) == (["p.0"], "")
    with caplog.at_level(logging.CRITICAL):
        writer.reload(FullState("h", 2, (group,), entries=(entry,)))
    assert (found("AUTH_b/c/o"), found.reader.placement("AUTH_a")) == ([], "")


def test_a_placement_is_found_replaced_and_taken_away(writer, found):
    place = found.reader.placement
    assert place("AUTH_a") == ""
    writer.apply([change(1, entries=(Placement("AUTH_a", "ec21").entry(),))])
    assert (place("AUTH_a"), place("AUTH_b")) == ("ec21", "")
    writer.apply([change(2, entries=(Placement("AUTH_a", "gold").entry(),))])
    assert place("AUTH_a") == "gold"
    writer.reload(FullState("h", 3, (), entries=(Placement("AUTH_b", "ec21").entry(),)))
    assert (place("AUTH_a"), place("AUTH_b")) == ("", "ec21")
    writer.apply([change(4, entry_drops=("placement/AUTH_b",))])
    assert place("AUTH_b") == ""
    assert found.reader.problem == ""


def test_without_a_snapshot_nothing_is_placed(tmp_path):
    assert SnapshotReader(tmp_path / "nowhere", boot="boot1").placement("AUTH_a") == ""
