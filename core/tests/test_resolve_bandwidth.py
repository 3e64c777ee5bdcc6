"""Objectives of bandwidth at several scopes: which hold together, and the account of a container's bytes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluice_core.messages.policies import Target
from sluice_core.messages.predicate import Facts
from sluice_core.resolve import Candidates, bandwidth_aspects, identity, replaces
from sluice_core.testing import assignment

FACTS = Facts("GET", "o")
TENANT = Target("tenant", "name", "AUTH_a")
LOGS = Target("container", "name", "AUTH_a/c")
ARCHIVE = Target("container", "group", "archive")
CONTAINERS = Target("container", "all")
TENANTS = Target("tenant", "all")


def objective(name, target=TENANT, verb="set", created=0, **params):
    return assignment(
        name, kind="bandwidth", keyword="bandwidth", target=target, verb=verb, params=params, created=created
    )


def held(*assignments):
    return [one.id for one in Candidates(assignments).resolve(FACTS).get("bandwidth", ())]


def own(*assignments):
    return Candidates(assignments).own_account


def test_a_keyword_is_one_thing_and_bandwidth_one_for_each_storage_policy():
    assert identity("compression", {"storage_policy": "gold"}) == identity("compression", {"level": 1})
    assert identity("bandwidth", {"get_bw": 1.0}) == identity("bandwidth", {"put_bw": 2.0})
    assert identity("bandwidth", {"storage_policy": "Gold"}) == identity("bandwidth", {"storage_policy": "gold"})
    assert len({identity("bandwidth", {"storage_policy": name}) for name in ("", "gold", "silver")}) == 3
    assert identity("bandwidth", {"storage_policy": 0}) == identity("bandwidth", {"storage_policy": "0"})


def test_an_objective_speaks_of_the_methods_that_it_has_rates_for():
    assert bandwidth_aspects(objective("a", get_bw=1.0, storage_policy="Gold")) == {("GET", "gold")}
    assert bandwidth_aspects(objective("a", max_put_bw=1.0, node_get_bw=1.0)) == {("GET", ""), ("PUT", "")}
    assert bandwidth_aspects(objective("a", verb="delete")) == frozenset()
    assert bandwidth_aspects(assignment("a", params={"get_bw": 1.0})) == frozenset()


def test_objectives_under_two_storage_policies_hold_at_one_scope_and_the_newer_of_one():
    gold = objective("gold", get_bw=1.0, storage_policy="gold", created=1)
    silver = objective("silver", get_bw=1.0, storage_policy="silver", created=2)
    newer = objective("newer", put_bw=1.0, storage_policy="GOLD", created=3)
    assert held(gold, silver) == ["gold", "silver"]
    assert held(gold, silver, newer) == ["silver", "newer"]
    assert replaces(newer, gold)
    assert not replaces(newer, silver)


def test_a_delete_ends_all_that_is_older_or_wider_and_nothing_that_is_newer():
    gold = objective("gold", get_bw=1.0, storage_policy="gold", created=1)
    silver = objective("silver", get_bw=1.0, storage_policy="silver", created=3)
    delete = objective("delete", verb="delete", created=2)
    wide = objective("wide", TENANTS, put_bw=1.0)
    assert held(gold, delete, wide) == []
    assert held(gold, silver, delete, wide) == ["silver"]
    assert replaces(delete, gold)
    assert held(delete, objective("all", get_bw=1.0, created=5), wide) == ["wide", "all"]


def test_a_ceiling_is_the_narrower_ones_of_each_level_and_the_least_of_the_levels():
    def ceiling(*assignments, method="GET", side="proxy", policy=0):
        return Candidates(assignments).ceiling(method, side, policy, "gold")

    assert ceiling() == ceiling(objective("floor", get_bw=9.0)) == 0.0
    tenant, wide = objective("tenant", max_get_bw=5.0), objective("wide", TENANTS, max_get_bw=2.0, max_put_bw=3.0)
    assert ceiling(tenant) == ceiling(tenant, wide) == 5.0
    assert ceiling(objective("floor", get_bw=9.0), wide) == 0.0
    assert ceiling(tenant, wide, method="PUT") == 3.0
    assert ceiling(tenant, objective("logs", LOGS, max_get_bw=7.0)) == 5.0
    assert ceiling(tenant, objective("logs", LOGS, max_get_bw=3.0)) == 3.0
    assert ceiling(tenant, objective("gold", max_get_bw=4.0, storage_policy="Gold")) == 4.0
    assert ceiling(tenant, objective("other", max_get_bw=4.0, storage_policy="1")) == 5.0
    assert ceiling(tenant, objective("other", max_get_bw=4.0, storage_policy="1"), policy=1) == 4.0
    assert ceiling(wide, objective("delete", verb="delete", created=9)) == 0.0


@pytest.mark.parametrize(
    "params",
    [
        {"max_get_bw": "fast"},
        {"max_get_bw": [1.0]},
        {"max_get_bw": -1.0},
        {"max_get_bw": float("nan")},
        {"max_get_bw": float("inf")},
        {"max_get_bw": 5.0, "class": "platinum"},
    ],
)
def test_a_ceiling_that_cannot_be_read_is_none_and_harms_nobody(params):
    found = Candidates([objective("odd", **params), objective("puts", max_put_bw=2.0, created=1, storage_policy="1")])
    assert found.ceiling("GET", "proxy", 1, "gold") == 0.0
    assert found.ceiling("PUT", "proxy", 1, "gold") == 2.0


def test_a_ceiling_is_told_where_it_is_kept():
    below = assignment("below", kind="bandwidth", keyword="bandwidth", target=TENANT, place="storage_node",
                       params={"max_get_bw": 5.0, "max_put_bw": 4.0})  # fmt: skip
    found = {
        (method, side): Candidates([below]).ceiling(method, side, 0, "gold")
        for method in ("GET", "PUT")
        for side in ("proxy", "storage_node")
    }
    assert found == {
        ("GET", "proxy"): 0.0,
        ("GET", "storage_node"): 5.0,
        ("PUT", "proxy"): 4.0,
        ("PUT", "storage_node"): 0.0,
    }


def test_a_delete_for_a_container_leaves_what_its_tenant_is_promised():
    delete = objective("delete", LOGS, verb="delete", created=9)
    everyone = objective("everyone", CONTAINERS, get_bw=1.0)
    assert held(delete, everyone, objective("tenant", get_bw=2.0)) == ["tenant"]


@pytest.mark.parametrize(
    ("narrow", "wide", "expected"),
    [
        ({"get_bw": 1.0}, {"put_bw": 1.0}, ["narrow", "wide"]),
        ({"get_bw": 1.0}, {"get_bw": 2.0}, ["narrow"]),
        ({"max_get_bw": 1.0}, {"get_bw": 2.0}, ["narrow"]),
        ({"get_bw": 1.0}, {"get_bw": 2.0, "put_bw": 2.0}, ["narrow", "wide"]),
        ({"get_bw": 1.0, "put_bw": 1.0}, {"get_bw": 2.0, "max_put_bw": 2.0}, ["narrow"]),
        ({"get_bw": 1.0, "storage_policy": "gold"}, {"get_bw": 2.0}, ["narrow", "wide"]),
        ({"get_bw": 1.0}, {"get_bw": 2.0, "storage_policy": "gold"}, ["narrow"]),
        ({"get_bw": 1.0, "storage_policy": "gold"}, {"get_bw": 2.0, "storage_policy": "Gold"}, ["narrow"]),
    ],
)
def test_a_narrower_objective_takes_the_place_of_a_wider_one_where_it_speaks_of_the_same(narrow, wide, expected):
    here = objective("narrow", LOGS, created=1, **narrow)
    assert held(here, objective("wide", created=2, **wide)) == expected
    assert held(here, objective("wide", created=0, **wide)) == sorted(expected, reverse=True)


@pytest.mark.parametrize(
    ("assignments", "methods"),
    [
        ([], set()),
        ([objective("t", get_bw=1.0), objective("s", TENANTS, put_bw=1.0)], set()),
        ([objective("c", LOGS, get_bw=1.0)], {"GET"}),
        ([objective("c", LOGS, max_put_bw=1.0), objective("t", get_bw=1.0)], {"PUT"}),
        ([objective("c", LOGS, node_get_bw=1.0), objective("all", CONTAINERS, put_bw=1.0)], {"GET", "PUT"}),
        ([objective("g", ARCHIVE, get_bw=1.0)], {"GET"}),
        ([objective("all", CONTAINERS, get_bw=1.0, storage_policy="gold")], {"GET"}),
        ([objective("d", LOGS, verb="delete"), objective("all", CONTAINERS, get_bw=1.0)], set()),
        ([objective("d", LOGS, verb="delete")], set()),
        ([objective("d", CONTAINERS, verb="delete"), objective("c", LOGS, get_bw=1.0)], {"GET"}),
        ([objective("d", TENANT, verb="delete"), objective("c", LOGS, get_bw=1.0)], {"GET"}),
        ([assignment("f", target=LOGS, params={"get_bw": 1.0})], set()),
    ],
)
def test_a_container_has_an_account_of_its_own_for_methods_that_objectives_of_containers_speak_of(assignments, methods):
    assert own(*assignments) == methods
    assert own(*reversed(assignments)) == methods


targets = st.sampled_from([LOGS, ARCHIVE, CONTAINERS, TENANT, TENANTS])
given_rates = st.dictionaries(
    st.sampled_from(["get_bw", "max_get_bw", "put_bw", "max_put_bw"]), st.just(1.0), min_size=1
)
policies = st.sampled_from([{}, {"storage_policy": "gold"}, {"storage_policy": "Gold"}, {"storage_policy": "1"}])


@st.composite
def several(draw):
    made = []
    for number in range(draw(st.integers(0, 6))):
        verb = draw(st.sampled_from(["set", "set", "delete"]))
        params = {**draw(given_rates), **draw(policies)} if verb == "set" else {}
        made.append(objective(f"p{number}", draw(targets), verb, number, **params))
    return made


@given(several())
def test_for_each_method_and_storage_policy_the_narrowest_scope_that_speaks_of_it_has_its_newest(made):
    """A second implementation for comparison: find the deciding objective, narrowest and newest first."""
    chosen = set()
    for method, policy in [(method, policy) for method in ("GET", "PUT") for policy in ("", "gold", "1", "other")]:
        ended = set()
        for rank, level in sorted({(one.target.rank(), one.target.level) for one in made}):
            if level in ended:
                continue
            here = sorted((one for one in made if one.target.rank() == rank), key=lambda one: -one.created)
            living = [one for n, one in enumerate(here) if not any(replaces(newer, one) for newer in here[:n])]
            chosen |= {one.id for one in living if (method, policy) in bandwidth_aspects(one)}
            if any({(method, policy), (method, "")} & bandwidth_aspects(one) for one in living):
                break
            if any(one.verb == "delete" for one in living):
                ended.add(level)
    assert set(held(*made)) == chosen
