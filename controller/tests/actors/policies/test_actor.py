"""From batches to actions in force: policy actors on a testbed without broker and store."""

import asyncio
import inspect
from functools import wraps

import pytest

from sluice_actors.policies.actor import metric_path
from sluice_actors.policies.decision_writer import wanted_assignments
from sluice_actors.policies.family_actor import is_family
from sluice_actors.runtime import actor as runtime_actor
from sluice_actors.testing import PolicyTestbed, batch_of, plan_of
from sluice_core.messages.policies import PolicyState, Target
from sluice_dsl.catalogue.vocabulary import default_catalogue
from sluice_dsl.compile import compile_text
from sluice_dsl.plan import PERSISTENT, TRANSIENT, Plan

BUSY = ["metric", "PUTS_SEC", ">", 3]
READ = ["metric", "GETS_SEC", ">", 3]
CALM = ["metric", "PUTS_SEC", "<", 3]
BIG = ["size", ">", 100]
ALL_TENANTS = Target("tenant", "all")


def on_stage(**options):
    """Run an async test with a testbed that is closed afterwards."""

    def wrap(test):
        @wraps(test)
        def run(*args, **kwargs):
            async def story():
                stage = PolicyTestbed(**options)
                try:
                    await test(stage, *args, **kwargs)
                finally:
                    await stage.close()

            asyncio.run(story())

        signature = inspect.signature(test)  # without the testbed, which is not a fixture
        run.__signature__ = signature.replace(parameters=list(signature.parameters.values())[1:])
        return run

    return wrap


@on_stage()
async def test_a_transient_policy_fires_and_is_taken_back(stage):
    actor = stage.add(plan_of(BUSY))
    for window, value in enumerate([1, 8, 8, 1, 8, 1, 1, 1], 1000):
        await stage.window(window, PUTS_SEC={"AUTH_test": value})
    assert stage.done(actor) == [("set", 1001), ("taken_back", 1006)]
    assert len(stage.listener.reports) == 2 + 3  # and each time the end became near, or not near any more


@on_stage()
async def test_a_policy_fires_again(stage):
    actor = stage.add(plan_of(BUSY))
    for window, value in enumerate([8, 1, 1, 8, 1, 1], 1000):
        await stage.window(window, PUTS_SEC={"AUTH_test": value})
    assert [what for what, _ in stage.done(actor)] == ["set", "taken_back", "set", "taken_back"]


@on_stage()
async def test_silent_windows_count_as_false_also_for_less_than(stage):
    actor = stage.add(plan_of(CALM))
    await stage.window(1000, PUTS_SEC={"AUTH_test": 1})
    assert stage.in_force(actor) == {("", 0): True}
    await stage.window(1001, PUTS_SEC={"AUTH_other": 1})
    await stage.window(1002, PUTS_SEC={})
    assert stage.in_force(actor) == {}


@on_stage()
async def test_absence_of_batches_takes_nothing_back(stage):
    actor = stage.add(plan_of(BUSY))
    await stage.window(1000, PUTS_SEC={"AUTH_test": 8})
    stage.clock.now = 1600.0
    stage.router.aggregators.close_due("PUTS_SEC")
    await stage.system.idle()
    assert stage.in_force(actor) == {("", 0): True}
    await stage.window(1600, PUTS_SEC={})
    assert stage.in_force(actor) == {("", 0): True}
    await stage.window(1601, PUTS_SEC={})
    assert stage.in_force(actor) == {}


@on_stage()
async def test_actions_of_one_sentence_have_different_lives(stage):
    actor = stage.add(plan_of(BUSY, lives=(PERSISTENT, TRANSIENT)))
    await stage.window(1000, PUTS_SEC={"AUTH_test": 8})
    assert stage.in_force(actor) == {("", 0): True, ("", 1): True}
    await stage.window(1001, PUTS_SEC={})
    await stage.window(1002, PUTS_SEC={})
    assert stage.in_force(actor) == {("", 0): True}
    assert stage.done(actor) == [("set", 1000), ("changed", 1002)]


@on_stage()
async def test_a_mixed_condition_leaves_a_predicate_over_the_request(stage):
    actor = stage.add(plan_of(["and", BUSY, BIG]))
    await stage.window(1000, PUTS_SEC={"AUTH_test": 8})
    assert stage.in_force(actor) == {("", 0): BIG}


@on_stage()
async def test_a_condition_that_needs_no_metric_holds_without_any_value(stage):
    actor = stage.add(plan_of(["or", BUSY, BIG]))
    await stage.window(1000, PUTS_SEC={"AUTH_other": 8})
    assert stage.in_force(actor) == {("", 0): BIG}
    await stage.window(1001, PUTS_SEC={"AUTH_test": 8})
    assert stage.in_force(actor) == {("", 0): True}
    await stage.window(1002, PUTS_SEC={})
    await stage.window(1003, PUTS_SEC={})
    assert stage.in_force(actor) == {("", 0): BIG}


@on_stage()
async def test_sustained_counts_silent_windows_as_false(stage):
    actor = stage.add(plan_of(BUSY, sustained=3.0))
    for window, rows in enumerate([{"AUTH_test": 8}, {"AUTH_test": 8}, {}] + [{"AUTH_test": 8}] * 3, 1000):
        await stage.window(window, PUTS_SEC=rows)
    assert stage.done(actor) == [("set", 1005)]


@pytest.mark.parametrize(
    ("condition", "puts", "gets", "expected"),
    [
        (["and", BUSY, READ], 8, 8, True),
        (["and", BUSY, READ], 8, 1, False),
        (["and", BUSY, READ], 8, None, False),
        (["or", BUSY, READ], None, 8, True),
        (["or", BUSY, READ], None, None, False),
        (["or", ["and", BUSY, READ], CALM], 1, 8, True),
        (["and", ["or", BUSY, CALM], READ], 3, 8, False),
    ],
)
@on_stage()
async def test_conditions_over_several_metrics(stage, condition, puts, gets, expected):
    actor = stage.add(plan_of(condition))
    await stage.window(
        1000,
        PUTS_SEC={} if puts is None else {"AUTH_test": puts},
        GETS_SEC={} if gets is None else {"AUTH_test": gets},
    )
    assert stage.in_force(actor) == ({("", 0): True} if expected else {})


@on_stage()
async def test_a_window_is_judged_once_when_all_its_metrics_are_in(stage):
    actor = stage.add(plan_of(["or", BUSY, READ]))
    await stage.batches([batch_of("PUTS_SEC", 1000, {"AUTH_test": 8})])
    assert stage.in_force(actor) == {}
    await stage.batches([batch_of("GETS_SEC", 1000, {})])
    assert stage.done(actor) == [("set", 1000)]


@on_stage()
async def test_a_metric_that_nobody_reports_is_silent_and_a_lost_batch_makes_the_window_missing(stage):
    actor = stage.add(plan_of(["or", BUSY, READ]))
    await stage.window(1000, PUTS_SEC={"AUTH_test": 8}, GETS_SEC={})
    await stage.window(1001, PUTS_SEC={}, GETS_SEC={})
    for window in (1002, 1003, 1004):  # GETS_SEC is lost: its value is not known
        await stage.window(window, PUTS_SEC={})
        assert stage.in_force(actor) == {("", 0): True}
    await stage.window(1005, PUTS_SEC={})  # and now it counts as silent
    assert stage.done(actor) == [("set", 1000), ("taken_back", 1005)]


@on_stage()
async def test_metrics_of_different_periods_the_shorter_sets_the_pace(stage):
    stage.clock.now = 995.0
    actor = stage.add(plan_of(["and", BUSY, READ]))
    await stage.window(995, period=5.0, GETS_SEC={"AUTH_test": 8})
    for window in range(1000, 1004):
        await stage.window(window, PUTS_SEC={"AUTH_test": 8 if window == 1001 else 1})
    assert stage.done(actor) == [("set", 1001), ("taken_back", 1003)]


@on_stage()
async def test_a_container_is_watched_at_its_own_path(stage):
    actor = stage.add(plan_of(BUSY, "AUTH_test/logs"))
    await stage.window(1000, PUTS_SEC={"AUTH_test": 8, "AUTH_test/other": 8})
    assert stage.in_force(actor) == {}
    await stage.window(1001, PUTS_SEC={"AUTH_test": 8, "AUTH_test/logs": 8})
    assert stage.in_force(actor) == {("", 0): True}


@on_stage()
async def test_the_cluster_is_the_sum_of_its_tenants(stage):
    actor = stage.add(plan_of(BUSY, Target("cluster"), granularity="cluster"))
    await stage.window(1000, PUTS_SEC={"A": 1, "B": 1, "A/c": 9})
    assert stage.in_force(actor) == {}
    await stage.window(1001, PUTS_SEC={"A": 2, "B": 2})
    assert stage.in_force(actor) == {("", 0): True}


@on_stage()
async def test_all_means_each_member_and_those_that_join_later(stage):
    actor = stage.add(plan_of(BUSY, ALL_TENANTS))
    await stage.window(1000, PUTS_SEC={"A": 8, "B": 1})
    assert stage.in_force(actor) == {("A", 0): True}
    await stage.window(1001, PUTS_SEC={"A": 1, "C": 8})
    assert stage.in_force(actor) == {("A", 0): True, ("C", 0): True}
    await stage.window(1002, PUTS_SEC={"C": 8})
    assert stage.in_force(actor) == {("C", 0): True}
    assert list(actor.members()) == ["C"]
    assert [(one.what, one.member) for one in actor.firings] == [("set", "A"), ("set", "C"), ("taken_back", "A")]


class Friends:
    def __init__(self, *paths):
        self.paths = set(paths)

    def contains(self, level, group, path):
        return (level, group) == ("tenant", "friends") and path in self.paths


FRIENDS = Friends("A", "B")


@on_stage(groups=FRIENDS)
async def test_a_group_means_its_members_only_and_who_leaves_is_taken_back(stage):
    actor = stage.add(plan_of(BUSY, Target("tenant", "group", "friends")))
    await stage.window(1000, PUTS_SEC={"A": 8, "B": 8, "C": 8})
    assert stage.in_force(actor) == {("A", 0): True, ("B", 0): True}
    FRIENDS.paths.discard("B")
    await stage.window(1001, PUTS_SEC={"A": 8, "B": 8, "C": 8})
    assert stage.in_force(actor) == {("A", 0): True}
    assert [(one.what, one.member) for one in actor.firings][-1] == ("taken_back", "B")


LEAVERS = Friends("A", "B")


@on_stage(groups=LEAVERS)
async def test_who_leaves_a_group_keeps_no_persistent_action_of_it_whether_busy_or_silent(stage):
    actor = stage.add(plan_of(BUSY, Target("tenant", "group", "friends"), lives=(PERSISTENT,)))
    await stage.window(1000, PUTS_SEC={"A": 8, "B": 8})
    await stage.window(1001, PUTS_SEC={})
    assert stage.in_force(actor) == {("A", 0): True, ("B", 0): True}
    LEAVERS.paths.clear()
    await stage.window(1002, PUTS_SEC={"A": 8})
    assert stage.in_force(actor) == {}
    assert actor.members() == {}
    LEAVERS.paths.add("A")
    await stage.window(1003, PUTS_SEC={"A": 8})
    assert stage.in_force(actor) == {("A", 0): True}


@on_stage()
async def test_a_restarted_actor_goes_on_where_it_was(stage):
    plans = {
        "p1": plan_of(BUSY),
        "p2": plan_of(BUSY, ALL_TENANTS),
        "p3": plan_of(["and", BUSY, BIG], lives=(PERSISTENT,)),
    }
    actors = [stage.add(plan, name) for name, plan in plans.items()]
    await stage.window(1000, PUTS_SEC={"AUTH_test": 8})
    await stage.window(1001, PUTS_SEC={"AUTH_test": 1})
    states = [PolicyState.decode(actor.state().encode()) for actor in actors]
    assert [state.status for state in states] == ["active"] * 3

    heirs = [stage.add(plans[state.policy], state.policy, state) for state in states]
    await stage.system.idle()
    assert [stage.in_force(heir) for heir in heirs] == [stage.in_force(actor) for actor in actors]
    stage.listener.reports.clear()
    await stage.window(1060, PUTS_SEC={})
    assert [stage.in_force(heir) for heir in heirs] == [{}, {}, {("", 0): BIG}]
    assert [state.status for state in (heir.state() for heir in heirs)] == ["waiting", "waiting", "active"]
    assert heirs[0].firings[0] == states[0].firings[0]


@on_stage()
async def test_a_settled_actor_gets_no_silent_windows_and_reports_nothing(stage):
    actor = stage.add(plan_of(BUSY))
    told = []
    await stage.window(1000, PUTS_SEC={"AUTH_test": 1})
    look = stage.router.deliver
    stage.router.deliver = lambda deliveries: look(told.append(one) or one for one in deliveries)
    await stage.window(1001, PUTS_SEC={"AUTH_other": 9})
    await stage.window(1002, PUTS_SEC={"AUTH_test": 1})
    assert told == [(actor, (1002, 1.0, 1))]
    assert stage.listener.reports == []


@on_stage()
async def test_a_failed_actor_says_so_keeps_what_is_in_force_and_recovers(stage):
    runtime_first, runtime_actor.BACKOFF_FIRST = runtime_actor.BACKOFF_FIRST, 0.01
    try:
        actor = stage.add(plan_of(BUSY))
        neighbour = stage.add(plan_of(BUSY), "p2")
        await stage.window(1000, PUTS_SEC={"AUTH_test": 8})
        stage.system.send(actor, "no window at all, this one")
        await stage.system.idle()
        assert len(stage.listener.errors) == 1
        state = actor.state()
        assert (state.status, state.reason[:10]) == ("failed", "TypeError:")
        assert stage.in_force(actor) == stage.in_force(neighbour) == {("", 0): True}
        async with asyncio.timeout(5):
            while not actor.running:
                await asyncio.sleep(0.005)
        await stage.window(1001, PUTS_SEC={})
        await stage.window(1002, PUTS_SEC={})
        assert actor.state().status == neighbour.state().status == "waiting"
    finally:
        runtime_actor.BACKOFF_FIRST = runtime_first


@pytest.mark.parametrize(
    "condition",
    [["metric", "GETS_SEC", ">", 3], ["metric", "PUTS_SEC", "~", 3], ["and", BUSY, ["colour", "red"]],
     ["metric", "PUTS_SEC", ">", "x"], ["metric"]],
)  # fmt: skip
@on_stage()
async def test_an_invalid_condition_fails_its_actor_alone(stage, condition):
    good = plan_of(BUSY)
    bad = stage.add(type(good)(good.target, good.actions, condition, 0.0, ("PUTS_SEC",), "tenant"), "bad")
    actor = stage.add(good)
    await stage.window(1000, PUTS_SEC={"AUTH_test": 8})
    assert bad.state().status == "failed"
    assert bad.state().reason.startswith("DecodeError: not a ")
    assert stage.in_force(actor) == {("", 0): True}


@on_stage()
async def test_metrics_are_in_use_while_an_actor_subscribes_to_them(stage):
    one, two = stage.add(plan_of(BUSY)), stage.add(plan_of(["and", BUSY, READ], ALL_TENANTS), "p2")
    await stage.system.idle()
    assert stage.used == {"PUTS_SEC": True, "GETS_SEC": True}
    stage.system.stop(two)
    await stage.system.idle()
    assert stage.used == {"PUTS_SEC": True, "GETS_SEC": False}
    stage.system.stop(one)
    await stage.system.idle()
    assert stage.used == {"PUTS_SEC": False, "GETS_SEC": False}


@on_stage()
async def test_observed_values_as_the_policy_saw_them(stage):
    single, all_of_them = stage.add(plan_of(["and", BUSY, READ])), stage.add(plan_of(BUSY, ALL_TENANTS), "p2")
    await stage.system.idle()
    assert single.subscription.observed(single) is None
    await stage.window(1000, PUTS_SEC={"AUTH_test": 7, "B": 1}, GETS_SEC={})
    values = {"PUTS_SEC": 7, "GETS_SEC": None}
    assert single.subscription.observed(single) == {"window": 1000, "values": values, "members": {}}
    assert all_of_them.subscription.observed(all_of_them) == {
        "window": 1000, "values": {}, "members": {"AUTH_test": {"PUTS_SEC": 7}, "B": {"PUTS_SEC": 1}},
    }  # fmt: skip


@pytest.mark.parametrize(
    ("target", "granularity", "path", "of_many"),
    [
        (Target("tenant", "name", "A"), "tenant", "A", False),
        (Target("container", "name", "A/c"), "container", "A/c", False),
        (Target("container", "name", "A/c"), "tenant", "A", False),
        (Target("object", "name", "A/c/o/p"), "container", "A/c", False),
        (Target("volume", "name", "A/id-1"), "volume", "A/id-1", False),
        (Target("volume", "name", "A/id-1"), "tenant", "A", False),
        (Target("volume", "all"), "volume", "", True),
        (Target("tenant", "name", "A"), "cluster", "", False),
        (Target("cluster", "name"), "cluster", "", False),
        (Target("cluster", "all"), "cluster", "", False),
        (Target("cluster", "name"), "tenant", "", True),
        (Target("tenant", "all"), "tenant", "", True),
        (Target("container", "group", "g"), "container", "", True),
    ],
)
def test_path_at_which_the_metrics_of_a_target_are_read(target, granularity, path, of_many):
    assert is_family(target, granularity) is of_many
    if not of_many:
        assert metric_path(target, granularity) == path


@on_stage()
async def test_a_sentence_becomes_an_actor_and_its_assignment(stage):
    text = "FOR TENANT AUTH_test WHEN PUTS_SEC > 3 AND OBJECT_SIZE > 1MB DO SET noop TRANSIENT"
    (compiled,) = compile_text(text, default_catalogue())
    actor = stage.add(Plan.decode(compiled.plan.encode()))
    assert wanted_assignments(actor) == {}
    await stage.window(1000, PUTS_SEC={"AUTH_test": 7})
    (found,) = wanted_assignments(actor).values()
    assert (found.id, found.keyword, found.target.name) == ("p1.0", "noop", "AUTH_test")
    assert found.when == ["size", ">", 1_000_000]


@on_stage()
async def test_a_held_loop_reads_what_came_in_time_before_it_closes_a_window(stage):
    actor = stage.add(plan_of(["metric", "PUTS_SEC", ">", 10]))
    for window in (1000, 1001, 1002):
        await stage.batches(batch_of("PUTS_SEC", window, {}, node) for node in ("node1", "node2"))
    stage.clock.now = 1004.05
    stage.router.aggregators.add_batch(batch_of("PUTS_SEC", 1003, {"AUTH_test": 8}, "node1"))
    stage.clock.now = 1004.9  # the event loop was blocked for long, and runs the timer before the socket
    stage.router.aggregators._time_is_over("PUTS_SEC")
    stage.router.aggregators.add_batch(batch_of("PUTS_SEC", 1003, {"AUTH_test": 8}, "node2"))
    await stage.system.idle()
    assert stage.done(actor) == [("set", 1003)]
