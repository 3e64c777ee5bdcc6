"""Completion: all possible next words, and never a syntax error."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sluice_core.describe import ActionInfo, Parameter
from sluice_core.messages.policies import CONTAINER, NAME, OBJECT, TENANT, VOLUME, Target
from sluice_dsl.catalogue.base import ActionAlias, MetricAlias
from sluice_dsl.catalogue.vocabulary import default_catalogue
from sluice_dsl.completion import KINDS, MOST, complete
from sluice_dsl.diagnostics import ERROR, SYNTAX, Reporter
from sluice_dsl.syntax.grammar import parse

SQUEEZE = ActionInfo(
    "squeeze", "filter", "makes it small",
    (
        Parameter("engine", "str", "codec", choices=("zstd", "a b")), Parameter("fast", "bool", ""),
        Parameter("n", "int", ""),
    ),
)  # fmt: skip
CATALOGUE = replace(
    default_catalogue(),
    actions={"squeeze": SQUEEZE, "gone": replace(SQUEEZE, keyword="gone", available=False)},
    actions_by_alias={"tiny": ActionAlias("squeeze", {"n": "9"})},
    metrics_by_alias={"WRITES": MetricAlias("PUTS_SEC")},
    groups={"gold": TENANT, "all of us": CONTAINER},
    tenants={"acme": "AUTH_1", "for": "AUTH_2", "o'hara": "AUTH_3"},
    aliases={"C1": Target(CONTAINER, NAME, "AUTH_1/logs"), "O1": Target(OBJECT, NAME, "AUTH_1/logs/o")},
    known_nodes=lambda: ["node1", "storage 2"],
    volumes=lambda name: [],
    volume_names=lambda: ["data1"],
    levels=("object", "container", "tenant", "cluster", VOLUME),
)


def texts(text, at=None, catalogue=CATALOGUE):
    return [one.text for one in complete(text, len(text) if at is None else at, catalogue).candidates]


OFFERED = [
    ("", ["FOR"]),
    ("fo", ["FOR"]),
    ("FOR GROUP ", ['"all of us"', "gold"]),
    ("FOR TENANT ", ["acme", '"for"', '''"o'hara"''']),
    ("FOR CONTAINER ", ["C1"]),
    ("FOR OBJECT ", ["O1"]),
    ("FOR VOLUME ", ["data1"]),
    ("FOR ALL ", ["TENANTS", "CONTAINERS", "OBJECTS", "VOLUMES"]),
    ("FOR CLUSTER ", ["WHEN", "DO"]),
    ("FOR acme w", ["WHEN"]),
    ("FOR acme WHEN puts", ["PUTS_SEC"]),
    ("FOR acme WHEN wr", ["WRITES"]),
    ("FOR acme WHEN (PUTS_SEC > 3 ", ["AND", "OR", ")"]),
    ("FOR acme WHEN PUTS_SEC ", ["<", "<=", ">", ">=", "=", "==", "!=", "AT"]),
    ("FOR acme WHEN PUTS_SEC AT ", ["node1", '"storage 2"']),
    ("FOR acme WHEN METHOD = P", ["PUT", "POST"]),
    ("FOR acme WHEN OBJECT_TYPE = do", ["DOCS"]),
    ("FOR acme WHEN PUTS_SEC > ", []),
    ("FOR acme WHEN PUTS_SEC > 3 ", ["AND", "OR", "SUSTAINED", "DO"]),
    ("FOR acme DO SET ", ["squeeze", "tiny"]),
    ("FOR acme DO SET squeeze WITH ", ["engine=", "fast=", "n="]),
    ("FOR acme DO SET squeeze fast=true, ", ["SET", "DELETE", "engine=", "n=", "squeeze", "tiny"]),
    ("FOR acme DO SET squeeze, ", ["SET", "DELETE", "squeeze", "tiny"]),
    ("FOR acme DO SET tiny WITH engine=", ["zstd", '"a b"']),
    ("FOR acme DO SET noop WITH n=3, SET squeeze fast=", ["true", "false"]),
    ("FOR acme DO SET squeeze WITH n=", []),
    ("FOR acme DO SET squeeze ON ", ["PROXY", "STORAGE_NODE"]),
    ("FOR acme DO SET squeeze ON PROXY ", ["TRANSIENT", "PERSISTENT", "EXISTING", ",", "FOR"]),
    ("FOR acme DO SET squeeze; ", ["FOR"]),
    ("FOR acme DO SET squeeze\nFOR c1 DO SET squeeze ON S", ["STORAGE_NODE"]),
    ("FOR acme # a comment\n W", ["WHEN"]),
    ("FOR acme # W", []),
    ("SET squeeze ", []),
    ("FOR acme DO DO ", []),
    ('FOR "a\\q" ', []),
]


@pytest.mark.parametrize(("text", "offered"), OFFERED)
def test_what_may_follow_is_offered(text, offered):
    assert texts(text) == offered


def test_targets_are_names_and_levels():
    offered = texts("FOR ")
    assert offered[:7] == ["C1", "O1", '"all of us"', "gold", "acme", '"for"', '''"o'hara"''']
    assert set(offered[7:]) == {"TENANT", "CONTAINER", "OBJECT", "VOLUME", "GROUP", "ALL", "CLUSTER"}


def test_a_cluster_without_volumes_offers_none():
    plain = replace(CATALOGUE, levels=("object", "container", "tenant", "cluster"))
    assert "VOLUME" not in texts("FOR ", catalogue=plain)
    assert "VOLUMES" not in texts("FOR ALL ", catalogue=plain)


@pytest.mark.parametrize(
    ("text", "at", "place"),
    [
        ("FOR ac", 6, (4, 6)),
        ("FOR acme DO", 6, (4, 8)),
        ("FOR acme DO", 4, (4, 4)),
        ("FOR acme DO", 8, (4, 8)),
        ('FOR "ac', 7, (4, 7)),
        ('FOR "acme" DO', 7, (4, 10)),
        ('FOR "acme" DO', 10, (10, 10)),
        ("", 0, (0, 0)),
    ],
)
def test_the_word_at_the_place_is_replaced(text, at, place):
    found = complete(text, at, CATALOGUE)
    assert (found.start, found.end) == place


def test_a_name_in_quotes_is_completed():
    assert texts('FOR GROUP "all') == ['"all of us"']
    assert texts('FOR TENANT "fo" DO', at=14) == ['"for"']


def test_each_candidate_has_a_kind_and_a_help_where_there_is_one():
    (one,) = complete("FOR acme DO SET sq", 18, CATALOGUE).candidates
    assert (one.kind, one.label, one.help) == ("action", "squeeze", "makes it small")
    kinds = {one.kind for text, _ in OFFERED for one in complete(text, len(text), CATALOGUE).candidates}
    assert kinds | {"attribute"} == set(KINDS)


def test_of_many_names_some_are_offered_and_it_says_so():
    many = replace(CATALOGUE, tenants={f"t{number:04}": "AUTH_1" for number in range(3000)})
    found = complete("FOR TENANT ", 11, many)
    assert (len(found.candidates), found.more) == (MOST, True)
    assert texts("FOR TENANT t2999", catalogue=many) == ["t2999"]


def test_a_sentence_that_is_very_long_is_not_completed():
    assert texts("FOR acme WHEN " + "NOT " * 2000) == []


def assert_no_error_in(text, since=0):
    """No syntax error starts behind ``since`` and before the end, where the rest of a sentence is missing."""
    reporter = Reporter(text)
    parse(text, reporter)
    for one in reporter.all(ERROR):
        lines = text.split("\n")
        at = sum(len(line) + 1 for line in lines[: one.line - 1]) + one.column - 1
        assert one.code != SYNTAX or not since <= at < len(text.rstrip()), (text, one)


@settings(max_examples=30)
@given(st.data())
def test_sentences_made_of_candidates_have_no_syntax_error(data):
    text = ""
    for _ in range(data.draw(st.integers(1, 25))):
        offered = texts(text) or ["3", '"x y"', "zstd"]
        text += data.draw(st.sampled_from(offered))
        assert_no_error_in(text)
        text += data.draw(st.sampled_from([" ", "  ", "\n", " # FOR (\n"]))


SENTENCES = [
    "FOR TENANT acme WHEN PUTS_SEC > 3 AND NOT (GET_BW < 3 MBps OR METHOD = PUT) SUSTAINED 3s DO SET squeeze TRANSIENT",
    "for all tenants do set squeeze with engine=zstd, n=3 on proxy persistent existing, delete tiny",
    "FOR CONTAINER 'a b/c' DO SET squeeze; # first\n FOR OBJECT a/c/o WHEN NODE_CPU AT n1 >= 50% DO DELETE tiny",
    "FOR GROUP gold DO DELETE FOR " + "FOR acme WHEN " + "NOT " * 15,
]


@settings(max_examples=300)
@given(st.sampled_from(SENTENCES), st.data())
def test_every_candidate_anywhere_is_no_syntax_error_there(sentence, data):
    position = data.draw(st.integers(0, len(sentence)))
    found = complete(sentence, position, CATALOGUE)
    before = sentence[: found.start]
    for one in found.candidates:
        assert_no_error_in(f"{before}{one.text}", since=found.start)


@settings(max_examples=300)
@given(st.text(alphabet=st.sampled_from("FOR ac=,()\"';#!\n3dDSET\\\x00é\ud800"), max_size=40), st.data())
def test_whatever_is_written_there_is_an_answer(text, data):
    position = data.draw(st.integers(0, len(text)))
    found = complete(text, position, CATALOGUE)
    assert 0 <= found.start <= position <= found.end <= len(text)
