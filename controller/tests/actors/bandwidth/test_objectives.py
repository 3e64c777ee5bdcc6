"""The objective of a flow."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.actors.bandwidth import MB, bandwidth_policy, replication_cap

from sluice_actors.bandwidth.objectives import Objectives
from sluice_actors.policies.group_index import GroupIndex
from sluice_core.describe import PROXY, STORAGE_NODE
from sluice_core.messages.bandwidth import GET, PUT, REPLICATION, Flow
from sluice_core.messages.policies import Change, Entry, Target
from sluice_core.resolve import Candidates, bandwidth_aspects
from sluice_core.testing import assignment

GOLD = Target("tenant", "group", "gold")
LOGS = Target("container", "group", "logs")
TENANTS = Target("tenant", "all")
CONTAINERS = Target("container", "all")


def change(*puts, drops=(), **more):
    return Change(1, "h", 0.0, puts=puts, drops=tuple(drops), **more)


def holding(*assignments, members=()):
    groups = GroupIndex()
    groups.replace([Entry("tenant_member", f"gold/{name}", {}) for name in members])
    found = Objectives(groups)
    found.set_policy_names({"0": "gold", "1": "Silver"})
    found.replace(assignments)
    return found


def floor(found, account="a", container="", method=GET, policy=0):
    own = found.for_flow(Flow(account, method, policy, container)).own
    return 0 if own is None else own.floor / MB


@pytest.mark.parametrize(
    ("narrow", "wide", "flow"),
    [
        (bandwidth_policy("a/c", get_bw=1), bandwidth_policy("a", get_bw=2), {"container": "c"}),
        (bandwidth_policy("a/c", get_bw=1), bandwidth_policy("x", get_bw=2, target=CONTAINERS), {"container": "c"}),
        (bandwidth_policy("x", get_bw=1, target=CONTAINERS), bandwidth_policy("a", get_bw=2), {"container": "c"}),
        (bandwidth_policy("a", get_bw=1), bandwidth_policy("x", get_bw=2, target=GOLD), {}),
        (bandwidth_policy("x", get_bw=1, target=GOLD), bandwidth_policy("y", get_bw=2, target=TENANTS), {}),
        (bandwidth_policy("a", "n.0", get_bw=1, storage_policy="gold"), bandwidth_policy("a", get_bw=2), {}),
    ],
)
def test_the_narrower_scope_wins(narrow, wide, flow):
    assert floor(holding(narrow, wide, members=["a"]), **flow) == 1
    assert floor(holding(wide, narrow, members=["a"]), **flow) == 1


def test_a_tenant_outside_the_group_gets_the_objective_for_all():
    found = holding(
        bandwidth_policy("x", get_bw=1, target=GOLD), bandwidth_policy("y", get_bw=2, target=TENANTS), members=["b"]
    )  # fmt: skip
    assert (floor(found, "a"), floor(found, "b")) == (2, 1)


def test_a_new_member_of_a_group_gets_its_objective_at_once():
    groups = GroupIndex()
    found = Objectives(groups)
    found.replace([bandwidth_policy("x", get_bw=1, target=GOLD)])
    assert floor(found) == 0
    joined = change(entries=(Entry("tenant_member", "gold/a", {}),))
    groups.apply(joined)
    assert not found.apply(joined)
    assert floor(found) == 1


def test_methods_are_apart():
    found = holding(bandwidth_policy("a", get_bw=1, put_bw=2), bandwidth_policy("a/c", get_bw=3))
    assert (floor(found, container="c"), floor(found, container="c", method=PUT)) == (3, 2)


def test_storage_policies_are_apart_and_known_by_name_or_number():
    found = holding(
        bandwidth_policy("a", "n.0", get_bw=1, storage_policy="silver"),
        bandwidth_policy("a", "n.1", get_bw=2, storage_policy="0"),
    )
    assert (floor(found, policy=1), floor(found, policy=0), floor(found, policy=2)) == (1, 2, 0)
    found.set_policy_names({"2": "silver"})
    assert (floor(found, policy=1), floor(found, policy=2)) == (0, 1)


def test_the_newer_wins_at_one_scope():
    old, new = bandwidth_policy("a", "old.0", get_bw=1), bandwidth_policy("a", "new.0", get_bw=2)
    object.__setattr__(new, "created", 5)
    assert floor(holding(old, new)) == floor(holding(new, old)) == 2


def aged(one, created):
    object.__setattr__(one, "created", created)
    return one


def delete(path, created=1, **more):
    return aged(assignment(f"d{path}.0", path, "bandwidth", "bandwidth", verb="delete", **more), created)


def test_after_a_delete_a_containers_bytes_are_its_tenants_again():
    found = holding(bandwidth_policy("a", get_bw=1, max_get_bw=5), bandwidth_policy("a/c", get_bw=3), delete("a/c"))
    assert floor(found, container="c") == floor(found) == 1
    assert found.for_flow(Flow("a", GET, 0, "c")).bound.ceiling == 5 * MB


def test_a_delete_ends_what_is_older_for_all_storage_policies_and_nothing_newer():
    old = [bandwidth_policy("a", "o.0", get_bw=1), bandwidth_policy("a", "o.1", get_bw=2, storage_policy="gold")]
    found = holding(*old, delete("a"), bandwidth_policy("x", get_bw=9, target=TENANTS))
    assert (floor(found), floor(found, policy=1)) == (0, 0)
    assert GET not in found.index.named
    newer = aged(bandwidth_policy("a", "n.0", get_bw=3, storage_policy="gold"), 2)
    found = holding(*old, delete("a"), newer)
    assert (floor(found), floor(found, policy=1)) == (3, 0)


def test_a_newer_set_at_one_scope_leaves_nothing_of_the_older():
    found = holding(bandwidth_policy("a", "o.0", get_bw=1, put_bw=2), aged(bandwidth_policy("a", "n.0", get_bw=3), 5))
    assert (floor(found), floor(found, method=PUT)) == (3, 0)
    assert PUT not in found.index.named


RATES = st.fixed_dictionaries(
    {},
    optional={
        "get_bw": st.integers(1, 9),
        "put_bw": st.integers(1, 9),
        "max_get_bw": st.integers(1, 9),
        "max_put_bw": st.integers(1, 9),
        "storage_policy": st.sampled_from(["gold", "Silver"]),
    },
)
SCOPES = {"a": None, "a/c": None, "gold": GOLD, "logs": LOGS, "": TENANTS, "/": CONTAINERS}


@given(st.lists(st.tuples(st.sampled_from(sorted(SCOPES)), st.booleans(), RATES, st.integers(0, 3)), max_size=7))
def test_objectives_are_those_that_resolve_gives_for_an_object(drawn):
    every = []
    for number, (path, gone, rates, created) in enumerate(drawn):
        if gone:
            one = assignment(f"p{number}.0", path, "bandwidth", "bandwidth", verb="delete", target=SCOPES[path])
        else:
            one = bandwidth_policy(path, f"p{number}.0", target=SCOPES[path], **rates)
        object.__setattr__(one, "policy", f"p{number}")
        every.append(aged(one, created))
    groups = GroupIndex()
    members = (Entry("tenant_member", "gold/a", {}), Entry("container_member", "logs/a/c", {}))
    groups.replace(members)
    found = Objectives(groups)
    found.set_policy_names({"0": "gold", "1": "silver"})
    found.replace(every)
    candidates = Candidates(every)
    pipeline = candidates.constant.get("bandwidth", ())
    for method, (policy, name) in itertools.product((GET, PUT), enumerate(("gold", "silver"))):
        aspects = {(method, name), (method, "")}
        speaks = [one for one in pipeline if aspects & bandwidth_aspects(one)]
        expected = min(
            speaks,
            key=lambda one: (one.target.rank(), not one.params.get("storage_policy"), -one.created, one.id),
            default=None,
        )
        held = found.for_flow(Flow("a", method, policy, "c"))
        assert (held.own and held.own.assignment) == (expected and expected.id)
        ceilings = [one.ceiling for one in (held.own, held.bound) if one is not None and one.ceiling]
        assert candidates.ceiling(method, PROXY, policy, name) == min(ceilings, default=0.0)
        assert candidates.ceiling(method, STORAGE_NODE, policy, name) == 0.0


def test_a_member_that_an_actor_fired_for_is_known_by_its_name():
    found = holding(assignment("p.0@b", kind="bandwidth", target=TENANTS, member="b", params={"get_bw": MB}))
    assert (floor(found, "a"), floor(found, "b")) == (0, 1)


def test_changes_are_followed():
    found = holding(bandwidth_policy("a", get_bw=1))
    assert found.apply(change(bandwidth_policy("a", get_bw=2), bandwidth_policy("b", get_bw=3), replication_cap(4)))
    assert (floor(found), floor(found, "b"), found.replication.ceiling) == (2, 3, 4 * MB)
    assert found.apply(change(drops=["a.0", "cap.0", "unknown.0"]))
    assert (floor(found), floor(found, "b"), found.replication) == (0, 3, None)
    assert not found.apply(change(assignment("x.0"), drops=["unknown.0"]))


def test_where_bytes_are_held_back():
    found = holding(bandwidth_policy("a", get_bw=1, put_bw=1, place=STORAGE_NODE))
    assert [found.side(method) for method in (GET, PUT, REPLICATION)] == [STORAGE_NODE, PROXY, STORAGE_NODE]
    found.apply(change(bandwidth_policy("b", max_get_bw=1)))
    assert found.side(GET) == PROXY
    assert (found.has_floors(GET), found.has_ceilings(GET), found.has_ceilings(PUT)) == (True, True, False)


def test_an_assignment_that_cannot_be_read_is_logged_and_left_out(caplog):
    broken = assignment("bad.0", "b", "bandwidth", "bandwidth", params={"get_bw": "fast"})
    found = holding(broken, bandwidth_policy("a", get_bw=1))
    assert (floor(found), floor(found, "b")) == (1, 0)
    assert "`bad.0`" in caplog.text
