"""The compiled condition, partially evaluated, against a direct three-valued reading of the sentence."""

import operator

from hypothesis import given, settings
from hypothesis import strategies as st

from sluice_core.messages.predicate import Facts, compile_predicate
from sluice_dsl.compile import compile_text
from sluice_dsl.plan import residual
from sluice_dsl.syntax.ast import And, Clause, Not, Or, Word
from sluice_dsl.testing import make_catalogue

CATALOGUE = make_catalogue()
OPERATORS = {
    "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge, "==": operator.eq, "!=": operator.ne,
}  # fmt: skip

numbers = st.integers(0, 3)
compared = st.builds(
    Clause,
    st.sampled_from(["ACTIVE_REQUESTS", "PUTS_SEC", "OBJECT_SIZE"]).map(Word),
    st.sampled_from(sorted(OPERATORS)),
    numbers.map(str).map(Word),
)
matched = st.one_of(
    st.builds(Clause, st.just(Word(subject)), st.sampled_from(["==", "!="]), st.sampled_from(words).map(Word))
    for subject, words in [
        ("OBJECT_TYPE", ["pdf", "text/plain", "image/*", "TEXT"]),
        ("OBJECT_TAG", ["hot", "cold"]),
        ("METHOD", ["GET", "PUT"]),
    ]
)


def _compound(inner):
    parts = st.lists(inner, min_size=2, max_size=3).map(tuple)
    return st.one_of(st.builds(Not, inner), st.builds(And, parts), st.builds(Or, parts))


conditions = st.recursive(st.one_of(compared, matched), _compound, max_leaves=8)
silent_or_not = st.none() | numbers.map(float)
values = st.fixed_dictionaries({"ACTIVE_REQUESTS": silent_or_not, "PUTS_SEC": silent_or_not})
facts = st.builds(
    Facts,
    method=st.sampled_from(["GET", "PUT", "HEAD"]),
    name=st.sampled_from(["a", "a.pdf", "b/c.TXT", "x.png"]),
    size=st.none() | numbers,
    content_type=st.sampled_from([None, "text/plain; charset=utf-8", "image/png", "application/octet-stream"]),
    tags=st.sampled_from([None, frozenset(), frozenset({"hot"}), frozenset({"hot", "cold"})]),
)


def kleene(node, metrics, request):
    """True, False or None (unknown), read from the sentence itself."""
    if isinstance(node, Not):
        value = kleene(node.part, metrics, request)
        return None if value is None else not value
    if isinstance(node, And | Or):
        parts = [kleene(part, metrics, request) for part in node.parts]
        decisive = isinstance(node, Or)
        if decisive in parts:
            return decisive
        return None if None in parts else not decisive
    if node.subject.text in ("OBJECT_TYPE", "OBJECT_TAG", "METHOD"):
        value = _equal(node, request)
        return value if value is None or node.op == "==" else not value
    known = request.size if node.subject.text == "OBJECT_SIZE" else metrics[node.subject.text]
    return None if known is None else OPERATORS[node.op](known, int(node.value.text))


def _equal(clause, request):
    wanted = clause.value.text
    if clause.subject.text == "METHOD":
        return request.method == wanted
    if clause.subject.text == "OBJECT_TAG":
        return None if request.tags is None else wanted in request.tags
    extension = request.name.rpartition(".")[2].lower() if "." in request.name else ""
    media = request.content_type and request.content_type.split(";")[0]
    if wanted == "TEXT":
        if extension == "txt":
            return True
        return None if media is None else media.startswith("text/")
    if wanted == extension:
        return True
    if media is None:
        return None
    return media == wanted or (wanted.endswith("/*") and media.startswith(wanted[:-1]))


@settings(max_examples=300)
@given(conditions, values, facts)
def test_what_remains_holds_exactly_when_the_sentence_is_true(condition, metrics, request):
    (compiled,) = compile_text(f"FOR acme WHEN {condition} DO SET noop", CATALOGUE, kept=True)
    remaining = residual(compiled.plan.condition, metrics)
    assert (compile_predicate(remaining)(request) is True) == (kleene(condition, metrics, request) is True)


@given(conditions)
def test_silent_metrics_satisfy_nothing_whichever_way_round(condition):
    (compiled,) = compile_text(f"FOR acme WHEN {condition} DO SET noop", CATALOGUE, kept=True)
    plan = compiled.plan
    silent = residual(plan.condition, dict.fromkeys(plan.metrics))
    assert silent == residual(plan.condition, {})
    if "size" not in str(plan.condition) and not any(w in str(plan.condition) for w in ("type", "tag", "method")):
        assert silent is False


@given(conditions)
def test_a_condition_and_its_negation_never_both_hold(condition):
    first, second = compile_text(
        f"FOR acme WHEN {condition} DO SET noop; FOR beta WHEN NOT ({condition}) DO SET noop", CATALOGUE, kept=True
    )
    metrics = {"ACTIVE_REQUESTS": 1.0, "PUTS_SEC": None}
    request = Facts("PUT", "a.pdf", None, "text/plain", frozenset({"hot"}))
    both = [compile_predicate(residual(one.plan.condition, metrics))(request) for one in (first, second)]
    assert both != [True, True]
