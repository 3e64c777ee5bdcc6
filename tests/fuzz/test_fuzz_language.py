"""The language accepts any text: a plan that prints and parses back, or errors within the text."""

import fuzz_targets as targets
from fuzz_settings import calm
from hypothesis import example, given
from hypothesis import strategies as st

from sluice_dsl.compile import compile_text
from sluice_dsl.syntax.keywords import RESERVED, quote

CALM = calm(100)

NAMES = ("acme", "AUTH_x", "C1", "gold", "archive", "a/c", "a/c/o", "a b", "it's", "FOR", "ü", "\n", "*", "?[x]", "")
METRICS = (
    "PUTS_SEC",
    "GETS_SEC",
    "STORED",
    "LATENCY",
    "ERRORS",
    "OBJECT_SIZE",
    "OBJECT_TYPE",
    "OBJECT_TAG",
    "METHOD",
    "X",
)
VALUES = (
    "3",
    "-1",
    "1e400",
    "0x1",
    "5MB",
    "30MBps",
    "50%",
    "2 min",
    "5s",
    "DOCS",
    "pdf",
    "text/*",
    "GET",
    "NaN",
    "9" * 400,
)
KEYWORDS = (
    "compression",
    "encryption",
    "noop",
    "caching",
    "bandwidth",
    "sampler",
    "thumbnail",
    "elasticity",
    "nothing",
)
PARAMETERS = ("engine", "get_bw", "mode", "share", "every", "keep", "count", "tags", "target_size", "x")

names = st.sampled_from(NAMES) | st.text(max_size=6)
words = names.map(quote)
values = st.sampled_from(VALUES) | words
operators = st.sampled_from(["<", "<=", ">", ">=", "=", "==", "!=", "=>"])
clauses = st.builds("{} {} {}".format, st.sampled_from(METRICS) | words, operators, values)
conditions = st.recursive(
    clauses,
    lambda inner: st.one_of(
        st.builds("NOT {}".format, inner),
        st.builds("({})".format, inner),
        st.builds("{} {} {}".format, inner, st.sampled_from(["AND", "OR", "and"]), inner),
    ),
    max_leaves=5,
)
levels = st.sampled_from(["TENANT", "CONTAINER", "OBJECT", "VOLUME", "GROUP"])
members = st.sampled_from(["TENANTS", "CONTAINERS", "OBJECT", "VOLUMES"])
objects = st.one_of(words, st.builds("{} {}".format, levels, words), members.map("ALL {}".format), st.just("CLUSTER"))
parameters = st.builds("{}={}".format, st.sampled_from(PARAMETERS) | words, values)
optional = st.sampled_from(["", " ON PROXY", " ON STORAGE_NODE", " TRANSIENT", " PERSISTENT", " ON PROXY TRANSIENT"])


@st.composite
def actions(draw):
    verb = draw(st.sampled_from(["SET ", "DELETE ", "set "]))
    given_parameters = draw(st.lists(parameters, max_size=2))
    with_them = f" WITH {', '.join(given_parameters)}" if given_parameters else ""
    return verb + draw(st.sampled_from(KEYWORDS) | words) + with_them + draw(optional)


@st.composite
def sentences(draw):
    when = f" WHEN {draw(conditions)}" if draw(st.booleans()) else ""
    lasting = f" SUSTAINED {draw(values)}" if when and draw(st.booleans()) else ""
    done = ", ".join(draw(st.lists(actions(), min_size=1, max_size=3)))
    return f"FOR {draw(objects)}{when}{lasting} DO {done}"


@CALM
@given(st.text(max_size=120))
@example("")
@example("\x00")
@example("\ud800")
@example("FOR \ud800 DO SET noop")
@example("FOR x\rDO\x0bSET\x0cnoop\x85\u2028")
@example("FOR a WHEN " + "(" * 5000)
@example("FOR a WHEN " + "NOT " * 5000 + "X > 1 DO SET noop")
@example("FOR a WHEN PUTS_SEC > 1" + " AND PUTS_SEC > 1" * 900 + " DO SET noop")
@example("FOR " * 2000)
@example('"' * 4000)
@example("FOR a DO SET noop WITH x=" + "9" * 5000)
@example("FOR a WHEN PUTS_SEC > " + "9" * 5000 + " DO SET noop")
@example("FOR a DO SET noop " + "a=1 " * 1500)
@example("FOR a DO " + "SET noop," * 1500)
@example("\\" * 5000 + "'" + "\\" * 5000)
@example("FOR '" + "\\u{" + "f" * 4000 + "}' DO SET noop")
@example("FOR '\\u{110000}' DO SET noop")
@example("FOR '\\u{d800}' DO SET noop")
def test_any_text_is_a_plan_or_errors_within_it(text):
    targets.check_text(text)


@CALM
@given(st.lists(sentences(), min_size=1, max_size=3), st.sampled_from(["; ", "\n", " # so\n", ""]))
def test_what_looks_like_sentences_is_a_plan_or_errors_within_them(several, separator):
    targets.check_text(separator.join(several))


@CALM
@given(sentences(), st.data())
def test_a_sentence_with_a_piece_missing_or_doubled_is_a_plan_or_errors_within_it(sentence, data):
    at = data.draw(st.integers(0, len(sentence)))
    end = data.draw(st.integers(at, min(len(sentence), at + 8)))
    piece = data.draw(st.sampled_from(["", sentence[at:end] * 2, *RESERVED, "(", ")", "'", ";", "\n"]))
    targets.check_text(sentence[:at] + piece + sentence[end:])


SOUND = ("PUTS_SEC > 3", "STORED >= 5MB", "ERRORS > 50%", "OBJECT_TYPE = DOCS", "OBJECT_SIZE < 1 MB", "OBJECT_TAG = x")
sound = st.recursive(
    st.sampled_from(SOUND),
    lambda inner: st.one_of(inner.map("NOT ({})".format), st.builds("({} OR {})".format, inner, inner)),
    max_leaves=4,
)


@CALM
@given(
    st.sampled_from(["acme", "CONTAINER C1", "GROUP gold", "ALL TENANTS"]), sound, st.sampled_from(["", " TRANSIENT"])
)
def test_a_sound_sentence_is_a_plan_and_prints_back(target, condition, life):
    text = f"FOR {target} WHEN {condition} DO SET compression{life}"
    assert len(compile_text(text, targets.CATALOGUE)) == 1
    targets.check_text(text)
