"""When filters know the attributes of an object, and sentences that can never act because they do not."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluice_core.describe import OBJECT_METHODS, ActionInfo
from sluice_core.messages.predicate import Facts, compile_predicate
from sluice_dsl.catalogue.builtin_words import BUILTIN_FILTERS
from sluice_dsl.checks.attributes import (
    NAME,
    NEVER,
    OBJECT_ATTRIBUTES,
    _may_hold,
    acting_methods,
    attribute_times,
)
from sluice_dsl.compile import PolicyErrors, compile_text
from sluice_dsl.testing import make_catalogue

PAGE = Path(__file__).parents[3] / "docs" / "admin" / "object-attributes.md"
UPLOADS = (
    ActionInfo("header", "filter", "acts on GET", on_put=False, on_request=True, methods=("GET",)),
    ActionInfo("both", "filter", "acts on GET and PUT", on_put=False, on_request=True, methods=("GET", "PUT"),
               places=("proxy", "storage_node")),
    ActionInfo("late", "filter", "may begin with the answer", on_put=False, on_request=True, methods=("GET",),
               on_answer=True),
    ActionInfo("audit", "filter", "every request", on_put=False, on_request=True),
)  # fmt: skip
CATALOGUE = make_catalogue(actions={**make_catalogue().actions, **{info.keyword: info for info in UPLOADS}})


def check(text, kept=False):
    """(errors, warnings), each with its marked words."""

    def shown(problems):
        return [(one.message, one.source[one.column - 1 :][: one.length]) for one in problems]

    try:
        (one,) = compile_text(text, CATALOGUE, kept=kept)
    except PolicyErrors as refused:
        return shown(refused.problems), shown(refused.warnings)
    return [], shown(one.warnings)


ACCEPTED = [
    "FOR CONTAINER C1 WHEN GETS_SEC > 5 AND OBJECT_SIZE<10M DO SET caching TRANSIENT",
    "FOR t WHEN OBJECT_TAG = keep DO SET delete_guard",
    "FOR t WHEN OBJECT_TYPE != image/* DO SET tagging WITH name=a value=b",
    "FOR t WHEN OBJECT_TYPE = pdf DO SET header",
    "FOR t WHEN OBJECT_SIZE > 1k OR METHOD = GET DO SET header",
    "FOR t WHEN OBJECT_SIZE > 1k OR PUTS_SEC > 3 DO SET header",
    "FOR t WHEN NOT OBJECT_TAG = raw DO SET late",
    "FOR t WHEN OBJECT_SIZE > 1k AND METHOD = PUT DO SET both",
    "FOR t WHEN OBJECT_SIZE < 1k DO SET csv_select, compression",
    "FOR t WHEN OBJECT_COMPRESSIBILITY > 50% DO SET compression",
]


@pytest.mark.parametrize("text", ACCEPTED)
def test_a_condition_that_can_hold_is_accepted(text):
    assert check(text) == ([], [])


REFUSED = [
    ("FOR t WHEN OBJECT_SIZE < 10M DO SET header", "OBJECT_SIZE",
     "`header` acts on GET, before OBJECT_SIZE is known: the condition would never hold"),
    ("FOR t WHEN PUTS_SEC > 3 AND NOT (OBJECT_TAG = raw) DO SET header", "OBJECT_TAG",
     "`header` acts on GET, before OBJECT_TAG is known: the condition would never hold"),
    ("FOR t WHEN OBJECT_TYPE = image/* DO SET header", "OBJECT_TYPE",
     "`header` acts on GET, before OBJECT_TYPE is known: the condition would never hold"),
    ("FOR t WHEN OBJECT_TYPE != pdf DO DELETE header", "OBJECT_TYPE",
     "`header` acts on GET, before OBJECT_TYPE is known: the condition would never hold"),
    ("FOR t WHEN METHOD = 'DELETE' DO SET caching", "METHOD",
     "`caching` acts on GET, HEAD and PUT, and the condition holds for none of these requests"),
    ("FOR t WHEN OBJECT_COMPRESSIBILITY > 50% DO SET delete_guard", "OBJECT_COMPRESSIBILITY",
     "`delete_guard` acts on DELETE, before OBJECT_COMPRESSIBILITY is known: the condition would never hold"),
    ("FOR t WHEN METHOD = GET DO SET compression", "METHOD",
     "`compression` acts on PUT, and the condition holds for none of these requests"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "word", "message"), REFUSED)
def test_a_condition_that_can_never_hold_is_refused_in_new_text_and_warned_of_in_old(text, word, message):
    errors, warnings = check(text)
    assert ([said for said, _ in errors], warnings) == ([message], [])
    assert errors[0][1].startswith(word)
    assert check(text, kept=True) == ([], errors)


def test_a_condition_that_holds_for_some_methods_only_is_warned_of():
    errors, ((message, marked),) = check("FOR t WHEN OBJECT_SIZE < 10M DO SET both")
    assert not errors
    assert marked == "OBJECT_SIZE < 10M"
    assert (
        message == "`both` acts on GET and PUT; on GET OBJECT_SIZE is not known, so the condition does not hold there"
    )
    _, ((message, _),) = check("FOR t WHEN OBJECT_SIZE < 10M DO SET audit")
    assert "on GET and HEAD OBJECT_SIZE is not known" in message


LEAVES = st.one_of(
    st.builds(lambda op: ["size", op, 10], st.sampled_from(["<", ">=", "==", "!="])),
    st.sampled_from([["type", ["pdf"]], ["type", ["image/*"]], ["type", ["pdf", "text/plain"]]]),
    st.sampled_from([["tag", ["hot"]], ["compressibility", ">", 2.0], ["compressibility", "<=", 2.0]]),
    st.builds(lambda names: ["method", names], st.lists(st.sampled_from(OBJECT_METHODS), min_size=1, max_size=2)),
)
PREDICATES = st.recursive(
    LEAVES | LEAVES.map(lambda leaf: ["not", leaf]),
    lambda inner: st.builds(
        lambda word, parts: [word, *parts], st.sampled_from(["and", "or"]), st.lists(inner, min_size=2, max_size=3)
    ),
    max_leaves=6,
)
OBJECTS = st.fixed_dictionaries(
    {
        "name": st.sampled_from(["a.pdf", "b.png", "c"]),
        "size": st.sampled_from([5, 10, 20]),
        "content_type": st.sampled_from(["application/pdf", "image/png", "text/plain"]),
        "compressibility": st.sampled_from([1.0, 3.0]),
        "tags": st.sampled_from([frozenset(), frozenset({"hot"})]),
    }
)
PLACED = [(info, place) for info in (*BUILTIN_FILTERS, *UPLOADS) for place in info.places]


@given(PREDICATES, OBJECTS, st.sampled_from(PLACED), st.data())
def test_what_holds_for_some_request_is_never_called_impossible(predicate, known, placed, data):
    info, place = placed
    method = data.draw(st.sampled_from(acting_methods(info)))
    times = attribute_times(info, place, method)
    fields = {"size": "size", "type": "content_type", "tag": "tags", "compressibility": "compressibility"}
    unknown = {field: None for attribute, field in fields.items() if times[attribute] in (NAME, NEVER)}
    if compile_predicate(predicate)(Facts(method, **{**known, **unknown})) is True:
        assert _may_hold(predicate, method, times)


def table():
    """The page's table: a line for each filter, place and method."""
    names = list(OBJECT_ATTRIBUTES.values())
    header = " | ".join(f"`{name}`" for name in names)
    lines = [f"| filter | place | method | {header} |", "|---" * (3 + len(names)) + "|"]
    for info in BUILTIN_FILTERS:
        for place in info.places:
            for method in acting_methods(info):
                times = attribute_times(info, place, method)
                cells = [f"`{info.keyword}`", place.upper(), method, *(times[one] for one in OBJECT_ATTRIBUTES)]
                lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def test_the_page_lists_every_shipped_filter():
    assert table() in PAGE.read_text(encoding="utf-8"), f"write this into docs/{PAGE.name}:\n{table()}"
