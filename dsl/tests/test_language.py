"""Errors and warnings of sentences, against a catalogue."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluice_core.errors import CallerError, Conflict
from sluice_dsl.catalogue.base import Catalogue
from sluice_dsl.catalogue.vocabulary import default_catalogue
from sluice_dsl.compile import MOST_SHOWN, ExistingPolicy, PolicyErrors, compile_text
from sluice_dsl.explain import explain
from sluice_dsl.testing import make_catalogue

CATALOGUE = make_catalogue()


def problems(text, catalogue=CATALOGUE, existing=()):
    with pytest.raises(PolicyErrors) as refused:
        compile_text(text, catalogue, existing)
    return refused.value.problems


def existing(*texts):
    return [ExistingPolicy(f"p{n}", compile_text(text, CATALOGUE)[0].plan) for n, text in enumerate(texts, 1)]


def warnings(text, others=(), catalogue=CATALOGUE):
    (compiled,) = compile_text(text, catalogue, existing(*others))
    return [warning.message for warning in compiled.warnings]


# sentence, the words that the carets mark, part of the message, near miss
REFUSED = [
    # vocabulary
    ("FOR t DO SET compresion", "compresion", "unknown action `compresion`", "compression"),
    ("FOR t DO SET zzz", "zzz", "unknown action `zzz`; this cluster has bandwidth, bitrev, caching,", ""),
    ("FOR t WHEN PUTZ_SEC > 3 DO SET noop", "PUTZ_SEC", "unknown metric or request attribute", "PUTS_SEC"),
    ("FOR t WHEN objectsize > 3 DO SET noop", "objectsize", "`OBJECTSIZE`", "OBJECT_SIZE"),
    ("FOR t DO SET compression WITH engin=zstd", "engin", "has no parameter `engin`", "engine"),
    ("FOR t DO SET noop WITH x=1", "x", "`noop` has no parameter `x`, it has none", ""),
    ("FOR GROUP golt DO SET noop", "golt", "unknown group `golt`", "gold"),
    # values
    ("FOR t WHEN THROUGHPUT < 10MB DO SET noop", "10MB", "expected a rate such as 30MBps", "10MBps"),
    ("FOR t WHEN PUTS_SEC > 3MBps DO SET noop", "3MBps", "expected a number per second", "3M"),
    ("FOR t WHEN ACTIVE_REQUESTS > many DO SET noop", "many", "expected a number such as", ""),
    ("FOR t WHEN LATENCY > 5MB DO SET noop", "5MB", "expected a duration", ""),
    ("FOR t WHEN ERRORS > -1% DO SET noop", "-1%", "expected a percentage", ""),
    ("FOR t WHEN OBJECT_SIZE < 10s DO SET noop", "10s", "expected a size", ""),
    ("FOR t WHEN OBJECT_TYPE > pdf DO SET noop", "OBJECT_TYPE > pdf", "`OBJECT_TYPE` knows only = and !=, not >", ""),
    ("FOR t WHEN METHOD <= GET DO SET noop", "METHOD <= GET", "`METHOD` knows only = and !=, not <=", ""),
    ("FOR t WHEN OBJECT_TAG < x DO SET noop", "OBJECT_TAG < x", "`OBJECT_TAG` knows only", ""),
    ("FOR t WHEN METHOD = PUTT DO SET noop", "PUTT", "expected an HTTP method", "PUT"),
    ("FOR t WHEN OBJECT_TYPE = image/ DO SET noop", "image/", "expected an extension, a media type or a term", ""),
    ("FOR t WHEN OBJECT_TAG = '' DO SET noop", "''", "expected one tag", ""),
    (
        "FOR t DO SET compression WITH level=99",
        "99",
        "parameter `level` of `compression` with engine=zstd: expected -7 to 19, got `99`",
        "",
    ),
    (
        "FOR t DO SET compression WITH level=12 engine=gzip",
        "12",
        "parameter `level` of `compression` with engine=gzip: expected 0 to 9, got `12`",
        "",
    ),
    ("FOR t DO SET compression WITH engine=GZIP level=-1", "-1", "with engine=gzip: expected 0 to 9, got `-1`", ""),
    ("FOR t DO SET compression WITH engine=lz4, level=1e30", "1e30", "with engine=lz4: expected -65536 to 12", ""),
    ("FOR t DO SET compression WITH level=99 engine=zst", "zst", "expected one of gzip, lz4, zstd", "zstd"),
    ("FOR t DO SET compression WITH level=fast", "fast", "expected a whole number, got `fast`", ""),
    ("FOR t DO SET compression WITH engine=zst", "zst", "expected one of gzip, lz4, zstd", "zstd"),
    ("FOR t DO SET compression WITH min_size=10mb", "10mb", "expected a size", "10MB"),
    ("FOR t DO SET sampler WITH mode=fast share=60%", "60%", "expected 0 to 50%", ""),
    ("FOR t DO SET sampler WITH mode=fast every=10ms", "10ms", "expected at least 1 s", ""),
    ("FOR t DO SET sampler WITH mode=fast keep=2kB", "2kB", "expected at most 1 KB", ""),
    ("FOR t DO SET sampler WITH mode=fast strict=perhaps", "perhaps", "expected true or false", ""),
    ("FOR t DO SET sampler", "sampler", "`sampler` needs parameter `mode`", ""),
    ("FOR t WHEN PUTS_SEC > 1 SUSTAINED 5x DO SET noop", "5x", "SUSTAINED: expected a duration", ""),
    ("FOR t WHEN PUTS_SEC > 1 SUSTAINED 0s DO SET noop", "0s", "SUSTAINED: expected a duration above 0", ""),
    # meaning
    ("FOR t WHEN OBJECT_SIZE > 1 SUSTAINED 5s DO SET noop", "5s", "SUSTAINED needs a metric", ""),
    ("FOR t DO SET noop, noop", "noop", "`noop` stands twice in one sentence", ""),
    ("FOR t DO SET noop, DELETE NOOP", "NOOP", "`noop` stands twice in one sentence", ""),
    ("FOR t DO SET compression WITH level=1 LEVEL=2", "LEVEL=2", "parameter `level` is given twice", ""),
    ("FOR t DO DELETE compression WITH level=1 engine=lz4", "level=1 engine=lz4", "DELETE takes no parameters", ""),
    ("FOR t DO SET encryption, compression", "compression", "`compression` runs before `encryption`", ""),
    ("FOR t DO SET bitrev, encryption", "encryption", "(stages 500 and 750): write it first", ""),
    (
        "FOR t DO SET compression ON STORAGE_NODE, encryption ON PROXY",
        "encryption ON PROXY",
        "`encryption` ON PROXY would run before `compression` ON STORAGE_NODE, whose stage is earlier",
        "",
    ),
    ("FOR t DO SET noop ON STORAGE_NODE", "STORAGE_NODE", "`noop` does not run ON STORAGE_NODE", ""),
    ("FOR t DO SET thumbnail ON STORAGE_NODE", "STORAGE_NODE", "needs the whole object, and a storage node", ""),
    ("FOR OBJECT a/b/c WHEN ACTIVE_REQUESTS > 3 DO SET noop", "ACTIVE_REQUESTS", "not per object", ""),
    ("FOR ALL OBJECTS WHEN ACTIVE_REQUESTS > 3 DO SET noop", "ACTIVE_REQUESTS", "not per object", ""),
    ("FOR GROUP videos WHEN ACTIVE_REQUESTS > 3 DO SET noop", "ACTIVE_REQUESTS", "not per object", ""),
    ("FOR CLUSTER WHEN LATENCY > 3s DO SET noop", "LATENCY", "measured per tenant and container, not per cluster", ""),
    # targets
    ("FOR CONTAINER logs DO SET noop", "logs", "expected the form `tenant/container`", ""),
    ("FOR CONTAINER a/b/c DO SET noop", "a/b/c", "`a/b/c` is not a container's name", ""),
    ("FOR CONTAINER a//b DO SET noop", "a//b", "`a//b` is not a container's name", ""),
    ("FOR TENANT a/b DO SET noop", "a/b", "`a/b` is not a tenant's name, expected the form `tenant`", ""),
    ("FOR TENANT C1 DO SET noop", "C1", "`C1` is an alias of a container, expected a tenant", ""),
    ("FOR CONTAINER LAB DO SET noop", "LAB", "`LAB` is an alias of a tenant, expected a container", ""),
    ("FOR OBJECT a/b DO SET noop", "a/b", "expected the form `tenant/container/object`", ""),
    ("FOR OBJECT a//c DO SET noop", "a//c", "expected the form `tenant/container/object`", ""),
    ("FOR a/b DO SET noop", "a/b", "expected `CONTAINER a/b`", ""),
    ("FOR a/b/c/d DO SET noop", "a/b/c/d", "expected `OBJECT a/b/c/d`", ""),
    ("FOR '' DO SET noop", "''", "expected a name, got an empty one", ""),
]


@pytest.mark.parametrize(("text", "marked", "message", "near_miss"), REFUSED)
def test_a_sentence_that_cannot_work_is_refused_with_the_thing_what_was_expected_and_the_near_miss(
    text, marked, message, near_miss
):
    (problem,) = problems(text)
    start = problem.column - 1
    assert text[start : start + problem.length] == marked
    assert message in problem.message
    assert problem.near_miss == near_miss
    assert problem.message.endswith(f", did you mean `{near_miss}`") is bool(near_miss)
    assert re.match("[a-z`]|DELETE |SUSTAINED", problem.message)
    assert not problem.message.endswith(".")


def test_all_errors_of_all_sentences_come_at_once_in_the_order_of_the_text():
    text = """\
FOR TENANT acme WHEN PUTZ_SEC > 3 SUSTAINED 5x DO SET compresion
FOR t DO ST noop
FOR CONTAINER logs WHEN METHOD = PUTT DO SET noop ON STORAGE_NODE, noop
"""
    found = problems(text)
    assert [(one.line, one.column) for one in found] == [
        (1, 22), (1, 45), (1, 55), (2, 10), (3, 15), (3, 34), (3, 54), (3, 68),
    ]  # fmt: skip
    data = PolicyErrors(found).to_data()
    assert data[0] == {
        "message": "unknown metric or request attribute `PUTZ_SEC`, did you mean `PUTS_SEC`",
        "line": 1,
        "column": 22,
        "end_column": 30,
        "caret": f"{text.splitlines()[0]}\n{' ' * 21}{'^' * 8}",
        "near_miss": "PUTS_SEC",
        "severity": "error",
        "code": "unknown",
    }


def test_a_flood_of_errors_is_counted_rather_than_shown():
    found = problems("x;" * 5000)
    assert len(found) == MOST_SHOWN + 1
    assert found[-1].message == f"{5000 - MOST_SHOWN} more from here on"


def test_errors_are_the_callers_and_show_themselves():
    with pytest.raises(CallerError) as refused:
        compile_text("FOR t DO SET zzz", CATALOGUE)
    assert refused.value.status == 400
    assert str(refused.value).endswith("  FOR t DO SET zzz\n               ^^^")


@pytest.mark.parametrize("word", ["elasticity", "namespace"])
def test_a_known_word_that_cannot_be_enforced_is_not_available_rather_than_unknown(word):
    (problem,) = problems(f"FOR t DO SET {word.upper()}", default_catalogue())
    assert (problem.message, problem.code) == (f"`{word}` is not available on this cluster", "unavailable")
    (problem,) = problems(f"FOR t DO SET {word.upper()}", Catalogue())
    assert (problem.message, problem.code) == (f"unknown action `{word}`", "unknown")


def test_volumes_are_known_and_not_available_on_a_cluster_without_them():
    for target in ("VOLUME v1", "ALL VOLUMES"):
        (problem,) = problems(f"FOR {target} DO SET xor", default_catalogue())
        assert problem.message == "volumes are not available on this cluster"
    (problem,) = problems("FOR t DO SET throttling WITH max_bw=3MBps", default_catalogue())
    assert problem.message == "`throttling` is not available on this cluster"


def test_a_word_that_means_two_things_must_say_which():
    catalogue = make_catalogue(groups={"acme": "tenant"})
    (problem,) = problems("FOR acme DO SET noop", catalogue)
    assert problem.message == "`acme` is a group and a tenant; say `TENANT`, `CONTAINER` or `GROUP` before it"
    assert compile_text("FOR GROUP acme DO SET noop", catalogue)[0].plan.target.select == "group"


# Conflicts with existing policies


def test_two_static_policies_that_set_the_same_filter_at_one_scope_are_refused():
    others = existing("FOR TENANT acme DO SET noop", "FOR AUTH_acme DO SET compression")
    with pytest.raises(Conflict) as refused:
        compile_text("FOR acme WHEN OBJECT_TYPE = DOCS DO SET compression WITH level=3", CATALOGUE, others)
    assert refused.value.status == 409
    (problem,) = refused.value.problems
    assert problem.message.startswith("policy `p2` sets `compression` for tenant `AUTH_acme` already")
    assert problem.code == "conflict"


@pytest.mark.parametrize(
    "text",
    [
        "FOR acme WHEN PUTS_SEC > 3 DO SET compression",  # dynamic: the newer wins while both hold
        "FOR beta DO SET compression",
        "FOR ALL TENANTS DO SET compression",
        "FOR CONTAINER acme/logs DO SET compression",
        "FOR acme DO SET noop",
        "FOR acme DO DELETE compression",
    ],
)
def test_other_policies_may_stand_beside_a_static_one(text):
    assert compile_text(text, CATALOGUE, existing("FOR acme DO SET compression"))


def test_a_static_policy_may_stand_beside_a_dynamic_one():
    assert compile_text("FOR acme DO SET noop", CATALOGUE, existing("FOR acme WHEN PUTS_SEC > 3 DO SET noop"))


def test_sentences_of_one_text_may_not_contradict_each_other_either():
    with pytest.raises(Conflict) as refused:
        compile_text("\nFOR acme DO SET noop\nFOR TENANT acme DO SET noop", CATALOGUE)
    assert "the sentence in line 2 sets `noop`" in refused.value.problems[0].message


def test_a_conflict_beside_another_error_is_no_mere_conflict():
    with pytest.raises(PolicyErrors) as refused:
        compile_text("FOR acme DO SET noop WITH x=1", CATALOGUE, existing("FOR acme DO SET noop"))
    assert refused.value.status == 400
    assert len(refused.value.problems) == 2


# Warnings

DROPS = [
    ("FOR CONTAINER acme/logs DO SET noop", ["FOR acme DO SET compression"],
     ["this replaces what policy `p1` does for tenant `acme`: drops `compression`"]),
    ("FOR CONTAINER acme/logs DO SET noop", ["FOR acme DO SET thumbnail, sampler WITH mode=fast"],
     ["this replaces what policy `p1` does for tenant `acme`: drops `thumbnail` and `sampler`"]),
    ("FOR CONTAINER acme/logs WHEN METHOD=PUT DO SET noop", ["FOR CLUSTER DO SET compression"],
     ["while its condition holds, this replaces what policy `p1` does for the cluster: drops `compression`"]),
    ("FOR CONTAINER acme/logs DO SET noop", ["FOR acme DO SET compression, encryption"],
     ["this replaces what policy `p1` does for tenant `acme`: drops `compression`"]),
    ("FOR CONTAINER acme/logs DO SET noop", ["FOR acme DO SET encryption"], []),
    ("FOR CONTAINER acme/logs DO SET compression", ["FOR acme DO SET compression"], []),
    ("FOR CONTAINER acme/logs DO SET noop", ["FOR beta DO SET compression"], []),
    ("FOR CONTAINER acme/logs DO SET noop", ["FOR CONTAINER acme/pics DO SET compression"], []),
    ("FOR CONTAINER acme/logs DO SET noop", ["FOR AUTH_ac DO SET compression"], []),
    ("FOR CONTAINER acme/logs DO SET noop", ["FOR acme DO SET bandwidth WITH get_bw=30MBps"], []),
    ("FOR acme DO SET noop", ["FOR CONTAINER acme/logs DO SET compression"], []),
    ("FOR acme DO SET noop", ["FOR acme DO SET compression"], []),
    ("FOR acme DO SET noop", ["FOR GROUP gold DO SET compression"],
     ["this replaces what policy `p1` does for the tenants of group `gold`: drops `compression`"]),
    ("FOR acme DO SET noop", ["FOR ALL TENANTS DO SET compression"],
     ["this replaces what policy `p1` does for all tenants: drops `compression`"]),
    ("FOR ALL CONTAINERS DO SET noop", ["FOR acme DO SET compression"],
     ["this replaces what policy `p1` does for tenant `acme`: drops `compression`"]),
    ("FOR OBJECT acme/logs/a DO SET noop", ["FOR C1 DO SET compression"],
     ["this replaces what policy `p1` does for container `C1`: drops `compression`"]),
    ("FOR CONTAINER acme/logs DO DELETE noop", ["FOR acme DO SET noop, compression"],
     ["this replaces what policy `p1` does for tenant `acme`: drops `compression`"]),
    ("FOR acme DO DELETE noop", ["FOR acme DO SET noop"],
     ["policy `p1` sets `noop` for the same target; this DELETE, being newer, wins"]),
    ("FOR acme DO SET encryption ON PROXY", ["FOR acme DO SET compression ON STORAGE_NODE"],
     ["`encryption` and `compression` of policy `p1` run against the order of their stages,"
      " since the proxy comes before the storage node"]),
]  # fmt: skip


@pytest.mark.parametrize(("text", "others", "expected"), DROPS)
def test_check_warns_of_what_a_sentence_would_drop(text, others, expected):
    assert warnings(text, others) == expected


def test_transient_without_a_metric_is_a_warning():
    for text in ("FOR t DO SET noop TRANSIENT", "FOR t WHEN OBJECT_SIZE > 5 DO SET noop TRANSIENT"):
        (warning,) = warnings(text)
        assert warning.startswith("TRANSIENT has no effect without a metric")
    assert warnings("FOR t WHEN PUTS_SEC > 5 DO SET noop TRANSIENT") == []


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("FOR t DO SET noop EXISTING", "`noop` changes nothing of what is stored, so EXISTING would do nothing"),
        ("FOR t DO SET caching EXISTING", "`caching` changes nothing of what is stored"),
        ("FOR t DO SET bandwidth WITH get_bw=1MBps EXISTING", "`bandwidth` changes nothing of what is stored"),
        ("FOR t WHEN PUTS_SEC > 3 DO SET compression TRANSIENT EXISTING", "expected PERSISTENT, not TRANSIENT"),
        ("FOR t DO SET compression EXISTING ON PROXY", "expected `,` or the end of the sentence, found `ON`"),
    ],
)
def test_existing_where_it_would_do_nothing_is_refused(text, words):
    with pytest.raises(PolicyErrors) as refused:
        compile_text(text, CATALOGUE)
    assert words in str(refused.value)


def test_existing_is_a_mark_of_one_action_and_a_name_elsewhere():
    (compiled,) = compile_text("FOR existing DO SET compression persistent existing, SET encryption", CATALOGUE)
    assert [action.existing for action in compiled.plan.actions] == [True, False]
    assert compiled.text == "FOR existing DO SET compression PERSISTENT EXISTING, SET encryption"
    assert "objects that are stored already are rewritten once" in explain(compiled, CATALOGUE)


def test_an_extension_that_looks_like_a_term_is_a_warning():
    (compiled,) = compile_text("FOR t WHEN OBJECT_TYPE = DOCZ DO SET noop", CATALOGUE)
    (warning,) = compiled.warnings
    assert warning.message == "`DOCZ` is taken as a file extension, did you mean `DOCS`"
    assert warning.severity == "warning"
    for known in ("DOCS", "doc", "pdf", "text/plain", "image/*"):
        assert warnings(f"FOR t WHEN OBJECT_TYPE = {known} DO SET noop") == []


def test_each_sentence_keeps_its_own_warnings():
    first, second = compile_text("FOR a DO SET noop TRANSIENT\nFOR b DO SET noop", CATALOGUE)
    assert (len(first.warnings), second.warnings) == (1, ())


def test_a_refused_text_shows_its_warnings_beside_the_errors():
    with pytest.raises(PolicyErrors) as refused:
        compile_text("FOR t DO SET zzz, noop TRANSIENT", CATALOGUE)
    assert [one["severity"] for one in refused.value.to_data()] == ["error", "warning"]


WORDS = """FOR WHEN SUSTAINED DO SET DELETE WITH ON TRANSIENT AND OR NOT ALL TENANTS TENANT GROUP CLUSTER PROXY acme C1
 gold a/b noop compression level engine=zstd share=5% PUTS_SEC OBJECT_SIZE OBJECT_TYPE METHOD DOCS GET 3 30MB/s 5 min
 = < >= != ( ) , ; # ' " \\ \x00"""
pieces = st.one_of(st.sampled_from(WORDS.split()), st.text(max_size=4))


def outcome(text):
    try:
        return compile_text(text, CATALOGUE), ()
    except PolicyErrors as refused:
        return [], refused.problems


@given(st.lists(pieces, max_size=25).map(" ".join))
def test_any_text_is_compiled_or_refused_with_errors_inside_it(text):
    compiled, errors = outcome(text)
    assert bool(compiled) is not bool(errors)
    lines = text.split("\n")
    for error in errors:
        assert 1 <= error.line <= len(lines)
        assert 1 <= error.column <= len(lines[error.line - 1]) + 1
        assert error.length >= 1
    assert [compile_text(one.text, CATALOGUE)[0].plan for one in compiled] == [one.plan for one in compiled]
