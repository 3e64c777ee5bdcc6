"""Every decoder: any bytes, and nearly valid ones, give a result or an error of Sluice's."""

import json

import fuzz_targets as targets
import msgpack
import pytest
from fuzz_settings import calm
from hypothesis import example, given
from hypothesis import strategies as st

DEEP = 3000
DAMAGE = (b"", b"[", b"]", b"}", b"\x00", b"\xff", b"9" * 30, b'"')
#: Hostile values of JSON and MessagePack.
ODD = (None, True, -1, 0, 2**70, 1e308, float("inf"), float("nan"), "", "\x00", "*", "é", [], {}, [[]], {"": None})
CALM = calm(60)

odd = st.sampled_from(ODD) | st.text(max_size=5) | st.integers() | st.floats()
values = st.recursive(
    odd,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


def packed(data):
    try:
        return msgpack.packb(data)
    except OverflowError:  # MessagePack has no larger numbers
        return msgpack.packb(str(data))


def written(cls, data):
    return packed(data) if cls.binary else json.dumps(data).encode()


@pytest.mark.parametrize("name", targets.TARGETS)
def test_any_bytes_are_taken_or_refused(name):
    @CALM
    @given(st.binary(max_size=200))
    @example(b"")
    @example(b"[" * DEEP)
    @example(b'{"a":' * DEEP)
    @example(b'["not",' * DEEP + b"true" + b"]" * DEEP)
    @example(b"\x91" * DEEP)
    @example(b"\xdd\xff\xff\xff\xff")
    @example(b"\xff\xfe[\x00")
    @example(b"1" * 5000)
    def fed(raw):
        targets.TARGETS[name].feed(raw)

    fed()


@pytest.mark.parametrize("name", targets.TARGETS)
def test_what_was_right_before_it_was_damaged_is_taken_or_refused(name):
    target = targets.TARGETS[name]

    @CALM
    @given(st.randoms(use_true_random=False), st.sampled_from(target.seeds))
    def fed(chance, seed):
        raw = bytearray(seed)
        for _ in range(chance.randint(0, 3)):
            at = chance.randrange(len(raw) + 1)
            raw[at : at + chance.randint(0, 3)] = chance.choice(
                (b"", b"[", b"]", b"}", b"\x00", b"\xff", b"9" * 30, b'"')
            )
        target.feed(bytes(raw))

    fed()


@pytest.mark.parametrize("seed", [pytest.param(one, id=f"{name}-{n}") for name, target in targets.TARGETS.items()
                                  for n, one in enumerate(target.seeds) if name != "messages"])  # fmt: skip
def test_the_seeds_are_taken(seed):
    for target in targets.TARGETS.values():
        target.feed(seed)


@pytest.mark.parametrize("cls", targets.MESSAGES, ids=lambda cls: cls.__name__)
def test_a_message_with_a_field_of_another_shape_is_a_message_or_told(cls):
    names = list(cls.__dataclass_fields__)

    @CALM
    @given(st.dictionaries(st.sampled_from([*names, "v", "x"]), values, max_size=6))
    @example({name: {} for name in names})
    @example({name: [] for name in names})
    @example({name: [[]] for name in names})
    @example({name: [5] for name in names})
    @example(dict.fromkeys(names, "text"))
    @example(dict.fromkeys(names, 5))
    @example({})
    def decoded(data):
        targets.feed_message(cls, written(cls, {"v": cls.version, **dict.fromkeys(names, ""), **data}))
        targets.feed_message(cls, written(cls, {"v": cls.version, **data}))

    decoded()


def test_the_messages_of_all_rooms_are_here():
    names = {one.__name__ for one in targets.MESSAGES}
    assert {
        "Assignment",
        "Change",
        "MetricBatch",
        "Group",
        "Plan",
        "MetricUsage",
        "Trial",
        "WriteNotice",
    } <= names
    assert len(names) == len(targets.MESSAGES) > 25
