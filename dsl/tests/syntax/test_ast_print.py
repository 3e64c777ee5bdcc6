"""Every node prints to text that parses to an equal node."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluice_dsl.diagnostics import Reporter
from sluice_dsl.syntax.ast import Action, And, Clause, Not, Or, Parameter, Sentence, Target, Word, shift_spans
from sluice_dsl.syntax.grammar import parse
from sluice_dsl.syntax.keywords import RESERVED, quote, unquote

NASTY = [
    *RESERVED, "for", "AT", "", " ", "a b", "it's", 'say "x"', "back\\slash", "\\n", "a\nb", "\r\n\t", "#x", "a#b",
    "a;b", "a,b", "a=b", "(a)", "!", "\x00", "\x7f", "\u200b", "\u2028", "\u00a0", "ümlaut/ö", "日本/語", "😀",
    "30MB", "30 MB", "5 s", "-1", "/", "a//b", "PROXY", "%", "*", "x" * 300, "'", '"', "\\u{41}", "é",
]  # fmt: skip

texts = st.one_of(st.sampled_from(NASTY), st.text(max_size=12))


def folded(fold):
    return texts.map(fold).filter(lambda text: fold(text) == text).map(Word)


words = texts.map(Word)
lower = folded(str.lower)
operators = st.sampled_from(["<", "<=", ">", ">=", "==", "!="])
clauses = st.builds(Clause, folded(str.upper), operators, words, st.none() | words)


def _compound(inner):
    parts = st.lists(inner, min_size=2, max_size=3).map(tuple)
    return st.one_of(st.builds(Not, inner), st.builds(And, parts), st.builds(Or, parts))


conditions = st.recursive(clauses, _compound, max_leaves=6)
levels = st.sampled_from(["tenant", "container", "object", "volume"])
targets = st.one_of(
    st.builds(Target, st.sampled_from(["", "tenant", "container", "object", "volume"]), st.just("name"), words),
    st.builds(Target, st.just(""), st.just("group"), words),
    st.builds(Target, levels, st.just("all")),
    st.just(Target("cluster", "name")),
)
actions = st.builds(
    Action,
    st.sampled_from(["set", "delete"]),
    lower,
    st.lists(st.builds(Parameter, lower, words), max_size=3).map(tuple),
    st.sampled_from(["", "proxy", "storage_node"]),
    st.sampled_from(["", "transient", "persistent"]),
    existing=st.booleans(),
)


@st.composite
def sentences(draw):
    condition = draw(st.none() | conditions)
    sustained = draw(st.none() | words) if condition else None
    return Sentence(draw(targets), draw(st.lists(actions, min_size=1, max_size=3).map(tuple)), condition, sustained)


@given(sentences())
def test_a_printed_sentence_parses_to_an_equal_one(sentence):
    text = str(sentence)
    reporter = Reporter(text)
    assert parse(text, reporter) == [sentence]
    assert reporter.all("error") == ()
    assert "\n" not in text


A, B, C = (Clause(Word(name), ">", Word("1")) for name in "ABC")


@pytest.mark.parametrize(
    ("condition", "text"),
    [
        (And((And((A, B)), C)), "(A > 1 AND B > 1) AND C > 1"),
        (And((A, Or((B, C)))), "A > 1 AND (B > 1 OR C > 1)"),
        (Or((A, And((B, C)))), "A > 1 OR B > 1 AND C > 1"),
        (Or((A, Or((B, C)))), "A > 1 OR (B > 1 OR C > 1)"),
        (And((Not(A), Not(Not(B)))), "NOT A > 1 AND NOT NOT B > 1"),
        (Not(And((A, B))), "NOT (A > 1 AND B > 1)"),
        (Not(Or((A, B))), "NOT (A > 1 OR B > 1)"),
    ],
)
def test_parentheses_stand_where_another_tree_would_be_read(condition, text):
    sentence = Sentence(Target("", "name", Word("a")), (Action("set", Word("noop")),), condition)
    assert str(condition) == text
    assert parse(str(sentence), Reporter(str(sentence))) == [sentence]


@given(st.lists(sentences(), min_size=2, max_size=3), st.sampled_from(["; ", "\n", " ", " # and\n"]))
def test_printed_sentences_may_follow_each_other(several, separator):
    text = separator.join(map(str, several))
    reporter = Reporter(text)
    found = parse(text, reporter)
    assert found == several
    assert [text[slice(*one.span)] for one in found] == [str(one) for one in several]


@given(texts)
def test_quoting_is_undone_by_unquoting(text):
    assert unquote(quote(text)) == text


def test_spans_play_no_part_in_equality():
    node = Word("a", span=(1, 2))
    assert node == Word("a")
    assert shift_spans(node, 5).span == (6, 7)
