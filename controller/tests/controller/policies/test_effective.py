"""``GET /effective``: the same result as on a node, and the reasons for all overridden actions."""

import tempfile
import time

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sluice_controller.policies.effective import (
    REASONS,
    ResourcePath,
    affected_assignments,
    effective,
    explain_overridden,
)
from sluice_core.messages.policies import Assignment, PolicyState, Target
from sluice_core.messages.predicate import Facts
from sluice_core.messages.registry import Group
from sluice_core.resolve import Candidates
from sluice_core.snapshot.reader import SnapshotReader, SnapshotWriter
from sluice_core.store.records import Draft
from sluice_dsl.plan import assignment_for

DYNAMIC = "FOR TENANT AUTH_a WHEN PUTS_SEC > 3 DO SET noop"


@pytest.fixture
def ask(api):
    def get(query, status=200):
        answer = api.get(f"/effective?{query}")
        assert answer.status_code == status, answer.content
        return answer.json()

    return get


def only(answer, kind="filter"):
    (found,) = [one for one in answer["kinds"] if one["kind"] == kind]
    return found


def why(verdict):
    return {(one["policy"], one["keyword"]): (one["reason"], one["by"]) for one in verdict["overridden"]}


def test_the_narrower_scope_decides_and_the_wider_is_named_with_its_reason(create, ask):
    wide = create("FOR TENANT AUTH_a DO SET compression")
    narrow = create("FOR CONTAINER AUTH_a/c DO SET noop")
    create("FOR TENANT AUTH_b DO SET noop")
    found = only(ask("target=AUTH_a/c/o"))
    assert [one["policy"] for one in found["pipeline"]] == found["decided_by"] == [narrow["id"]]
    assert why(found) == {(wide["id"], "compression"): ("narrower", [narrow["id"]])}
    assert only(ask("target=AUTH_a/d/o"))["decided_by"] == [wide["id"]]


def test_without_policies_nothing_is_in_force(ask):
    assert ask("target=AUTH_a")["kinds"] == []


def test_a_protective_filter_is_inherited_until_a_delete_names_it(create, ask):
    wide = create("FOR TENANT AUTH_a DO SET encryption")
    create("FOR CONTAINER AUTH_a/c DO SET noop")
    assert [one["keyword"] for one in only(ask("target=AUTH_a/c/o"))["pipeline"]] == ["encryption", "noop"] or [
        one["keyword"] for one in only(ask("target=AUTH_a/c/o"))["pipeline"]
    ] == ["noop", "encryption"]
    ender = create("FOR OBJECT AUTH_a/c/o DO DELETE encryption")
    found = only(ask("target=AUTH_a/c/o"))
    assert [one["policy"] for one in found["deletes"]] == [ender["id"]]
    assert why(found)[wide["id"], "encryption"] == ("deleted", [ender["id"]])


def test_conditions_about_the_request_hold_fail_or_are_unknown(create, ask):
    made = create("FOR TENANT AUTH_a WHEN OBJECT_SIZE > 100 DO SET compression")
    assert only(ask("target=AUTH_a/c/o&size=101"))["decided_by"] == [made["id"]]
    assert why(only(ask("target=AUTH_a/c/o&size=100"))) == {(made["id"], "compression"): ("condition", [])}
    answer = only(ask("target=AUTH_a/c/o"))
    assert why(answer) == {(made["id"], "compression"): ("unknown", [])}
    assert "`OBJECT_SIZE > 100`" in answer["overridden"][0]["message"]


@pytest.mark.parametrize(
    ("condition", "query", "holds"),
    [
        ("OBJECT_TYPE = pdf", "type=pdf", True),
        ("OBJECT_TYPE = pdf", "type=text/plain", False),
        ("OBJECT_TYPE = text/plain", "type=text/plain", True),
        ("OBJECT_TAG = hot", "tag=cold,%20Hot", True),
        ("OBJECT_TAG = hot", "tag=cold", False),
        ("METHOD = GET", "method=GET", True),
        ("METHOD = GET", "", False),
    ],
)
def test_each_fact_of_the_request_can_be_given(create, ask, condition, query, holds):
    create(f"FOR TENANT AUTH_a WHEN {condition} DO SET noop")
    assert bool(only(ask(f"target=AUTH_a/c/o&{query}"))["pipeline"]) is holds


def test_a_newer_policy_wins_at_one_scope(create, ask, backend):
    old = create("FOR TENANT AUTH_a DO SET compression")
    new = create("FOR TENANT AUTH_a DO DELETE compression")
    found = only(ask("target=AUTH_a"))
    assert found["pipeline"] == []
    assert found["decided_by"] == [new["id"]]
    assert why(found) == {(old["id"], "compression"): ("newer", [new["id"]])}


def test_a_disabled_policy_is_named(create, ask, api):
    made = create("FOR TENANT AUTH_a DO SET compression")
    api.put(f"/policies/{made['id']}", {"enabled": False}, format="json")
    assert why(only(ask("target=AUTH_a"))) == {(made["id"], "compression"): ("disabled", [])}


def test_a_dynamic_policy_says_what_its_actor_waits_for(create, ask, backend):
    made = create(DYNAMIC)
    assert why(only(ask("target=AUTH_a/c"))) == {(made["id"], "noop"): ("waiting", [])}
    assert backend.store.watched(time.time()) == [made["id"]], "so that it says so next time"
    for value, reason in ((1.0, "condition"), (None, "no_value")):
        backend.store.observe({made["id"]: {"window": int(time.time()), "values": {"PUTS_SEC": value}, "members": {}}})
        (one,) = only(ask("target=AUTH_a/c"))["overridden"]
        assert (one["reason"], one["observed"]) == (reason, {"PUTS_SEC": value})
    cached = backend.policy_cache.contents().policies[made["id"]]
    put = assignment_for(made["id"], cached.plan, 0, cached.policy.created, True)
    backend.store.commit(Draft("host", puts=(put,), states=(PolicyState(made["id"], "active"),)))
    assert only(ask("target=AUTH_a/c"))["decided_by"] == [made["id"]]


def test_an_assignment_for_one_member_does_not_hold_for_another(create, ask, backend):
    made = create("FOR ALL TENANTS WHEN PUTS_SEC > 3 DO SET noop")
    cached = backend.policy_cache.contents().policies[made["id"]]
    put = assignment_for(made["id"], cached.plan, 0, cached.policy.created, True, "AUTH_a")
    backend.store.commit(Draft("host", puts=(put,)))
    backend.store.observe(
        {made["id"]: {"window": int(time.time()), "values": {}, "members": {"AUTH_b": {"PUTS_SEC": 2.0}}}}
    )
    assert only(ask("target=AUTH_a/c"))["decided_by"] == [made["id"]]
    (one,) = only(ask("target=AUTH_b"))["overridden"]
    assert (one["reason"], one["observed"]) == ("condition", {"PUTS_SEC": 2.0})


@pytest.mark.parametrize(
    "query",
    [
        "",
        "target=",
        "target=/c",
        "target=a//o",
        "target=a&method=BREW",
        "target=a&size=-1",
        "target=a&size=x",
        "target=a&size=99999999999999999999",
        "target=a&limit=0",
        "target=a&typ=x",
    ],
)
def test_invalid_questions_are_refused(ask, query):
    assert ask(query, 400)["error"]["message"]


TARGETS = st.sampled_from(
    [
        Target("cluster", "all"),
        Target("tenant", "all"),
        Target("container", "all"),
        Target("object", "all"),
        Target("tenant", "name", "a"),
        Target("tenant", "name", "b"),
        Target("tenant", "group", "g"),
        Target("container", "group", "h"),
        Target("container", "name", "a/c"),
        Target("container", "name", "a/d"),
        Target("object", "name", "a/c/o"),
        Target("volume", "name", "a/c"),
        Target("volume", "group", "v"),
        Target("volume", "all"),
    ]
)
PREDICATES = st.sampled_from([True, ["size", ">", 5], ["method", ["GET"]], ["not", ["tag", ["x"]]]])
FACTS = st.builds(
    Facts,
    method=st.sampled_from(["PUT", "GET"]),
    name=st.just("o"),
    size=st.sampled_from([None, 1, 9]),
    tags=st.sampled_from([None, frozenset(), frozenset({"x"})]),
)
MEMBERS = {
    "tenant": ["", "a", "b"],
    "container": ["", "a/c"],
    "object": ["", "a/c/o"],
    "volume": ["", "a/c"],
    "cluster": [""],
}


@st.composite
def assignments(draw):
    made = []
    for number in range(draw(st.integers(0, 8))):
        target = draw(TARGETS)
        member = draw(st.sampled_from(MEMBERS[target.level])) if target.select != "name" else ""
        policy = f"p{draw(st.integers(0, 4))}"
        made.append(
            Assignment(
                f"{policy}.{number}{'@' + member if member else ''}",
                policy,
                draw(st.sampled_from(["filter", "bandwidth"])),
                draw(st.sampled_from(["set", "set", "delete"])),
                draw(st.sampled_from(["noop", "compression", "encryption"])),
                target,
                member,
                order=number,
                protective=draw(st.booleans()),
                created=draw(st.integers(1, 3)),
                when=draw(PREDICATES),
                about=draw(st.sampled_from([("objects",), ("volumes",), ("objects", "volumes")])),
            )
        )
    return made


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(assignments(), FACTS, st.sampled_from(["a/c/o", "a/d/o", "b/c/o", "a/c", "a", "z/z/z"]), st.booleans())
def test_the_api_resolves_policies_as_a_node_does(backend, made, facts, path, of_volume):
    groups = (
        *Group("g", members=("a",)).entries(),
        *Group("h", "container", ("a/c", "b/c")).entries(),
        *Group("v", "volume", ("a/c", "b/c")).entries(),
    )
    backend.store.client.flushdb()
    backend.store.commit(Draft("me", puts=tuple(made), entries=groups))
    there = backend.policy_cache.contents().entries
    of_volume = of_volume and path.count("/") == 1
    place = ResourcePath.read_volume(path, there) if of_volume else ResourcePath.read(path, there)
    with tempfile.TemporaryDirectory() as folder:
        writer = SnapshotWriter(folder)
        writer.open()
        writer.reload(backend.store.load())
        reader = SnapshotReader(folder)
        reader.refresh()
        if of_volume:
            expected = reader.find_volume(place.account, place.volume).resolve(facts)
        else:
            expected = reader.find(place.account, place.container, place.object).resolve(facts)
        reader.close()
        writer.close()
    found = effective(backend, place, facts)
    assert {one.kind: one.pipeline for one in found.verdicts if one.pipeline} == expected
    concerned = affected_assignments(backend, backend.policy_cache.contents(), place)
    for verdict in found.verdicts:
        named = [one.id for one in (*verdict.pipeline, *verdict.deletes)] + [
            one.assignment.id for one in verdict.overridden
        ]
        assert sorted(named) == sorted(one.id for one in concerned if one.kind == verdict.kind), "each exactly once"


@given(assignments(), FACTS)
def test_every_reason_is_one_that_the_schema_knows_and_names_who_it_should(made, facts):
    same = [one for one in made if one.kind == "filter"]
    _, overridden = explain_overridden(same, Candidates(same).resolve(facts), facts)
    for one in overridden:
        assert one.reason in REASONS
        assert bool(one.by) == (one.reason in ("newer", "deleted", "narrower"))
