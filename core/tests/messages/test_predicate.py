"""Predicates over a request: three-valued; unknown counts as false, negated or not."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluice_core.errors import DecodeError
from sluice_core.messages.predicate import Facts, all_of, any_of, compile_predicate

PUT = Facts("PUT", "dir.v1/report.PDF", 100, "text/plain; charset=utf-8", frozenset({"red"}))
BARE = Facts("GET", "plain")


def holds(predicate, facts=PUT):
    return compile_predicate(predicate)(facts)


@pytest.mark.parametrize(
    ("predicate", "known", "bare"),
    [
        (True, True, True),
        (False, False, False),
        (["size", "<", 101], True, None),
        (["size", "<=", 100], True, None),
        (["size", ">", 100], False, None),
        (["size", ">=", 100], True, None),
        (["size", "==", 100.0], True, None),
        (["size", "!=", 100], False, None),
        (["type", ["pdf"]], True, None),
        (["type", ["doc", "PDF"]], True, None),
        (["type", ["v1/report"]], False, None),
        (["type", ["text/plain"]], True, None),
        (["type", ["text/*"]], True, None),
        (["type", ["image/*"]], False, None),
        (["tag", ["RED", "blue"]], True, None),
        (["tag", ["blue"]], False, None),
        (["method", ["put"]], True, False),
        (["not", ["size", ">", 100]], True, None),
        (["and", ["method", ["PUT"]], ["size", ">", 1]], True, False),
        (["or", ["method", ["GET"]], ["size", ">", 1]], True, True),
        (["and"], True, True),
        (["or"], False, False),
    ],
    ids=str,
)
def test_values_of_predicates(predicate, known, bare):
    assert holds(predicate) is known
    assert holds(predicate, BARE) is bare


def test_an_extension_alone_decides_but_its_absence_leaves_the_media_type_open():
    assert holds(["type", ["txt"]], Facts("PUT", "a.txt")) is True
    assert holds(["type", ["pdf"]], Facts("PUT", "a.txt")) is None
    assert holds(["type", ["pdf"]], Facts("PUT", "a.txt", content_type="application/x")) is False


VALUES = (True, False, None)
CLAUSES = {True: ["method", ["PUT"]], False: ["method", ["GET"]], None: ["size", ">", 1]}
FACTS = Facts("PUT")


@pytest.mark.parametrize(("left", "right"), list(itertools.product(VALUES, VALUES)))
def test_and_or_not_follow_kleene(left, right):
    def low(*values):
        return False if False in values else None if None in values else True

    def flip(value):
        return None if value is None else not value

    pair = CLAUSES[left], CLAUSES[right]
    assert holds(["and", *pair], FACTS) is low(left, right)
    assert holds(["or", *pair], FACTS) is flip(low(flip(left), flip(right)))
    assert holds(["not", pair[0]], FACTS) is flip(left)


leaves = st.sampled_from(
    [True, False, ["size", "<", 50], ["size", ">=", 50], ["type", ["pdf"]], ["tag", ["red"]], ["method", ["PUT"]]]
)
predicates = st.recursive(
    leaves,
    lambda inner: st.one_of(
        st.tuples(st.sampled_from(["and", "or"]), inner, inner).map(list), st.tuples(st.just("not"), inner).map(list)
    ),
    max_leaves=8,
)
facts = st.builds(
    Facts,
    st.sampled_from(["PUT", "GET"]),
    st.sampled_from(["a", "a.pdf"]),
    st.none() | st.integers(0, 100),
    st.none() | st.just("text/plain"),
    st.none() | st.sets(st.sampled_from(["red", "blue"])).map(frozenset),
)


@given(predicates, facts)
def test_negation_is_its_own_inverse_and_knows_as_much(predicate, facts):
    once = holds(["not", predicate], facts)
    assert once is {True: False, False: True, None: None}[holds(predicate, facts)]
    assert holds(["not", ["not", predicate]], facts) is holds(predicate, facts)


@given(st.lists(predicates, max_size=4), facts)
def test_joining_means_what_and_and_or_mean(parts, facts):
    assert holds(all_of(*parts), facts) is holds(["and", *parts], facts)
    assert holds(any_of(*parts), facts) is holds(["or", *parts], facts)


def test_joining_drops_repetitions_and_constants():
    clause, other = ["size", ">", 1], ["tag", ["x"]]
    assert all_of() is True
    assert any_of() is False
    assert all_of(True, clause, clause) == clause
    assert all_of(clause, False) is False
    assert any_of(clause, True) is True
    assert all_of(["and", clause, other], other) == ["and", clause, other]


@pytest.mark.parametrize(
    "nonsense",
    [[], ["maybe", 1], ["size", "<"], ["size", "~", 1], ["size", "<", "big"], ["not"], ["type", 5], None, 7, {"a": 1}],
    ids=str,
)
def test_what_is_no_predicate_is_told(nonsense):
    with pytest.raises(DecodeError, match="not a request predicate"):
        compile_predicate(nonsense)
