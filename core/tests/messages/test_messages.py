"""Messages decode to what was encoded, and report what they cannot read."""

import contextlib
import json

import msgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluice_core.errors import DecodeError
from sluice_core.messages.events import Event
from sluice_core.messages.nodes import Counters, Hello, MetricBatch, NodeReport
from sluice_core.messages.policies import Assignment, Change, Firing, Policy, PolicyState, Target

words = st.text(max_size=20)
numbers = st.integers(-(2**53), 2**53)
reals = st.floats(allow_nan=False, allow_infinity=False, width=32)
scalars = st.one_of(words, numbers, reals, st.booleans())
predicates = st.sampled_from([True, False, ["size", ">", 10], ["and", ["type", ["pdf"]], ["not", ["tag", ["x"]]]]])
targets = st.builds(
    Target,
    st.sampled_from(["object", "container", "tenant", "cluster"]),
    st.sampled_from(["name", "group", "all"]),
    words,
    words,
)
assignments = st.builds(
    Assignment,
    id=words,
    policy=words,
    kind=words,
    verb=words,
    keyword=words,
    target=targets,
    member=words,
    params=st.dictionaries(words, scalars, max_size=3),
    place=words,
    stage=numbers,
    order=numbers,
    protective=st.booleans(),
    created=numbers,
    when=predicates,
)
names = st.lists(words, max_size=3).map(tuple)
rows = st.tuples(words, numbers, st.lists(reals, max_size=3).map(tuple))
sketches = st.dictionaries(st.integers(-99, 99), st.floats(0, 1e9), max_size=3).map(
    lambda counts: [number for pair in counts.items() for number in pair]
)
messages = st.one_of(
    targets,
    assignments,
    st.builds(Policy, words, words, words, st.dictionaries(words, scalars), st.booleans(), numbers, words),
    st.builds(
        PolicyState,
        words,
        words,
        st.dictionaries(words, st.dictionaries(words, scalars, max_size=2), max_size=2),
        st.lists(st.builds(Firing, reals, words, words, numbers), max_size=3).map(tuple),
    ),
    st.builds(Change, numbers, words, reals, words, st.lists(assignments, max_size=2).map(tuple), names, names),
    st.builds(NodeReport, words, words, numbers, words, words, st.dictionaries(words, words, max_size=2)),
    st.builds(Hello, words, words, numbers, st.dictionaries(words, numbers, max_size=2), names, names),
    st.builds(
        Event,
        st.floats(0, 2**37),
        words,
        words,
        words,
        words,
        words,
        words,
        words,
        st.dictionaries(words, scalars),
        words,
    ),
    st.builds(Counters, words, reals, st.lists(rows, max_size=3).map(tuple), words),
    st.builds(MetricBatch, words, words, numbers, numbers, st.dictionaries(words, st.dictionaries(words, reals))),
    st.builds(
        MetricBatch,
        words,
        words,
        numbers,
        numbers,
        quantile=reals,
        sketches=st.dictionaries(words, st.dictionaries(words, sketches, max_size=2), max_size=2),
    ),
    st.builds(
        Hello,
        words,
        words,
        numbers,
        st.just({}),
        quantiles=st.dictionaries(words, st.tuples(words, st.floats(0, 1)), max_size=2),
    ),
    st.lists(st.tuples(rows, sketches), max_size=3).map(
        lambda found: Counters("w", 0.0, tuple(row for row, _ in found), sketches={"S": [one for _, one in found]})
    ),
)


@given(messages)
def test_decoding_undoes_encoding(message):
    assert type(message).decode(message.encode()) == message


@given(messages, st.data())
def test_nothing_but_a_decode_error_comes_of_damaged_bytes(message, data):
    raw = bytearray(message.encode())
    at = data.draw(st.integers(0, len(raw) - 1))
    raw[at] = data.draw(st.integers(0, 255))
    cut = bytes(raw[: data.draw(st.integers(0, len(raw)))])
    with contextlib.suppress(DecodeError):
        type(message).decode(cut)


TARGET = Target("tenant", "name", "AUTH_a")


def test_a_newer_sender_may_add_fields():
    raw = json.dumps({"v": 1, **TARGET.to_data(), "colour": "blue"}).encode()
    assert Target.decode(raw) == TARGET


@pytest.mark.parametrize(
    ("raw", "complaint"),
    [
        (b"", "not a Target"),
        (b"null", "not a Target"),
        (b"[]", "not a Target"),
        (b'{"level":"tenant"}', "not a Target"),
        (b'{"v":2,"level":"tenant"}', "version `2`, expected 1"),
        (b'{"v":1}', "level"),
        (b"\xff\xfe", "not a Target"),
    ],
)
def test_what_is_no_message_is_told_and_kept(raw, complaint):
    with pytest.raises(DecodeError, match=complaint) as caught:
        Target.decode(raw)
    assert caught.value.raw == raw


def test_a_message_inside_a_message_is_checked_too():
    raw = json.dumps({"v": 1, "epoch": 1, "history": "h", "at": 0, "puts": [{"id": "p"}]}).encode()
    with pytest.raises(DecodeError, match="Assignment") as caught:
        Change.decode(raw)
    assert caught.value.raw == raw


def test_documents_are_json_and_what_is_sent_each_second_is_packed():
    assert json.loads(TARGET.encode())["name"] == "AUTH_a"
    assert msgpack.unpackb(MetricBatch("n", "M", 1, 1).encode())["node"] == "n"


def test_an_assignment_is_filed_under_its_member_or_its_name():
    def one(target, member=""):
        return Assignment("p.0", "p", "filter", "set", "noop", target, member).path()

    assert one(TARGET) == "AUTH_a"
    assert one(Target("tenant", "all"), "AUTH_b") == "AUTH_b"
    assert one(Target("tenant", "all")) == one(Target("container", "group", "mine")) == ""


def test_ranks_go_from_one_object_to_the_cluster():
    levels, selectors = ["object", "container", "tenant", "cluster"], ["name", "group", "all"]
    ranks = [Target(level, select).rank() for level in levels for select in selectors]
    assert ranks == sorted(set(ranks))
