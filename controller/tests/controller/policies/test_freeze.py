"""The sentence of a kept policy has the meaning of its assignments."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluice_controller.catalog.policy_cache import decode_policy
from sluice_controller.policies.services import condition_from_predicate, freeze_policy, keep_policy
from sluice_core.errors import Conflict
from sluice_core.messages.policies import Policy, PolicyState
from sluice_core.messages.predicate import Facts, all_of, any_of, compile_predicate
from sluice_core.store.records import Draft
from sluice_dsl.catalogue.vocabulary import default_catalogue
from sluice_dsl.compile import compile_text
from sluice_dsl.plan import assignment_for, residual

CATALOGUE = default_catalogue()
LEAVES = st.one_of(
    st.tuples(st.just("size"), st.sampled_from(["<", "<=", ">", ">=", "==", "!="]), st.integers(0, 9)).map(list),
    st.tuples(st.just("type"), st.lists(st.sampled_from(["pdf", "text/plain", "image/*"]), min_size=1)).map(list),
    st.tuples(st.just("tag"), st.lists(st.sampled_from(["hot", "two words", "and"]), min_size=1)).map(list),
    st.tuples(st.just("method"), st.lists(st.sampled_from(["PUT", "GET"]), min_size=1)).map(list),
)


def negate(predicate):
    if isinstance(predicate, bool):
        return not predicate
    return predicate[1] if predicate[0] == "not" else ["not", predicate]


PREDICATES = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        inner.map(negate),
        st.lists(inner, min_size=2, max_size=3).map(lambda parts: all_of(*parts)),
        st.lists(inner, min_size=2, max_size=3).map(lambda parts: any_of(*parts)),
    ),
    max_leaves=5,
)
FACTS = st.builds(
    Facts,
    method=st.sampled_from(["PUT", "GET"]),
    name=st.sampled_from(["a.pdf", "b"]),
    size=st.one_of(st.none(), st.integers(0, 9)),
    content_type=st.sampled_from([None, "text/plain", "image/png"]),
    tags=st.one_of(st.none(), st.frozensets(st.sampled_from(["hot", "two words", "and"]))),
)


@given(PREDICATES, FACTS)
def test_a_predicate_in_words_means_the_same(predicate, facts):
    text = f"FOR TENANT a WHEN {condition_from_predicate(predicate)} DO SET noop"
    (compiled,) = compile_text(text, CATALOGUE, kept=True)
    again = compile_predicate(residual(compiled.plan.condition, {}))
    assert (again(facts) is True) == (compile_predicate(predicate)(facts) is True)


def cached(sentence):
    (one,) = compile_text(sentence, CATALOGUE)
    return decode_policy(Policy("old", one.source, one.text, one.plan.to_data(), True, 7), 1)


def test_only_the_actions_in_force_are_kept():
    old = cached("FOR TENANT a WHEN PUTS_SEC > 3 SUSTAINED 5s DO SET noop TRANSIENT, SET compression PERSISTENT")
    new, puts = freeze_policy(old, [assignment_for("old", old.plan, 1, 7, True)], "new", "admin")
    assert new.policy.text == "FOR TENANT a DO SET compression"
    assert [one.keyword for one in new.plan.actions] == ["compression"]
    assert (new.plan.metrics, new.plan.condition, new.plan.sustained, new.policy.dynamic) == ((), True, 0.0, False)
    assert [(one.id, one.policy, one.created) for one in puts] == [("new.0", "new", 7)]
    (again,) = compile_text(new.policy.text, CATALOGUE)
    assert again.plan.actions[0].keyword == "compression"


@pytest.mark.parametrize("times", [1, 99])
def test_assignments_made_while_freezing_are_kept(backend, create, monkeypatch, times):
    made = create("FOR ALL TENANTS WHEN PUTS_SEC > 3 DO SET noop")
    plan = backend.policy_cache.contents().policies[made["id"]].plan
    read, fired = backend.store.assignments, []

    def fire(*_):
        found = read()
        if len(fired) < times:
            fired.append(f"AUTH_{len(fired)}")
            put = assignment_for(made["id"], plan, 0, 7, True, fired[-1])
            backend.store.commit(Draft("host", puts=(put,), states=(PolicyState(made["id"], "active"),)))
        return found

    monkeypatch.setattr(backend.store, "assignments", fire)
    if times == 99:
        with pytest.raises(Conflict, match="changes faster"):
            keep_policy(backend, made["id"], "admin")
        assert backend.store.policy(made["id"]), "nothing has changed"
    else:
        (kept,) = keep_policy(backend, made["id"], "admin").policies
        assert [(one.policy, one.member) for one in read()] == [(kept.policy.id, "AUTH_0")]
