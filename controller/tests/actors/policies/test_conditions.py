"""Compiled conditions agree with the plan's conditions; plans share their parts."""

import json

from hypothesis import given, settings
from hypothesis import strategies as st

from sluice_actors.policies.actor_factory import PlanCache
from sluice_actors.policies.conditions import ConditionCache
from sluice_actors.testing import metrics_of, plan_of
from sluice_core.messages.predicate import OPERATORS
from sluice_dsl.plan import residual

NUMBERS = st.integers(-2, 2)
CLAUSE = st.tuples(st.just("metric"), st.sampled_from("ABC"), st.sampled_from(sorted(OPERATORS)), NUMBERS).map(list)
REQUEST = st.sampled_from([["size", ">", 100], ["not", ["type", ["pdf"]]], ["method", ["PUT"]]])


def joined(parts):
    return st.builds(
        lambda word, found: [word, *found], st.sampled_from(["and", "or"]), st.lists(parts, min_size=2, max_size=3)
    )


CONDITION = st.recursive(CLAUSE | REQUEST, joined, max_leaves=6)
VALUE = st.none() | NUMBERS


@settings(deadline=None)
@given(CONDITION.filter(metrics_of), st.lists(st.tuples(VALUE, VALUE, VALUE), min_size=1, max_size=8))
def test_bits_lead_to_the_residual_of_the_plan(condition, rows):
    metrics = metrics_of(condition)
    program = ConditionCache().get(condition, metrics)
    for row in rows:
        values = dict(zip("ABC", row, strict=True))
        observed = tuple(values[name] for name in metrics)
        seen = observed[0] if len(metrics) == 1 else observed
        assert program.residual(program.bits(seen), seen) == residual(condition, values)
    assert program.bits(None) == 0
    assert program.residual(0, None) == residual(condition, {})


def test_equal_conditions_are_compiled_once_while_in_use():
    programs = ConditionCache()
    first = programs.get(["metric", "A", ">", 1], ("A",))
    assert programs.get(["metric", "A", ">", 1], ("A",)) is first
    assert programs.get(["metric", "A", ">", 2], ("A",)) is not first


def test_equal_parts_of_plans_are_kept_once():
    plans = PlanCache()
    made = [plan_of(["metric", "A", ">", 1], f"AUTH_{number}") for number in range(2)]
    one, two = (plans.decode(json.loads(json.dumps(plan.to_data()))) for plan in made)
    assert [one, two] == made
    assert one.actions is two.actions
    assert one.condition is two.condition
    assert one.target != two.target
