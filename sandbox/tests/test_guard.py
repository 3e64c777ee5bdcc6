"""The guard's checks from outside of a sandbox, against sessions with every kind of false report."""

from __future__ import annotations

import hashlib
import json

import pytest

from sluice_core.messages.uploads import Upload
from sluice_filters.api import CorruptData, Hint
from sluice_filters.testing import run
from sluice_sandbox.api import SandboxTeam, filter_class
from sluice_sandbox.limits import UNDO, Limits, SandboxFault


class Play:
    """A scripted session: the output of each feed and of finish, and its reported counts."""

    def __init__(self, feed=lambda data: data, rest=b"", counts=None):
        self._feed, self._rest, self._counts = feed, rest, counts
        self.taken = self.given = 0

    def feed(self, data):
        self.taken += len(data)
        out = self._feed(data)
        self.given += len(out)
        return out

    def finish(self):
        self.given += len(self._rest)
        return self._rest

    def counts(self):
        return [(self.taken, self.given)] if self._counts is None else self._counts


class Stage(SandboxTeam):
    environment = "process"

    def __init__(self, do, undo=None):
        super().__init__(Limits(slack=100, growth=2.0))
        self.sessions = {UNDO: undo or do, "do": do}

    def session(self, steps, hint):
        return Play(**self.sessions[steps[0].direction])


def flip(data):
    return bytes(value ^ 1 for value in data)


def filter_of(team, reverse=True, **info):
    code = hashlib.sha256(b"code").hexdigest()
    return filter_class(Upload("trick", "process", "python", "Main", code, 4, reverse=reverse, info=info), team)()


def stored(team, data=b"plain bytes"):
    one = filter_of(team)
    encoder = one.encoder(Hint())
    out = run(encoder, [data])
    return one, out, json.loads(json.dumps(encoder.record()))


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        ({"counts": [(3, 11)]}, r"filter `trick` ended after \[3, 11\] bytes of \[11, 11\]"),
        ({"counts": [(11, 3)]}, r"filter `trick` ended after \[11, 11\] bytes of \[11, 3\]"),
        ({"counts": []}, "filter `trick` ended with counts that cannot be"),
        ({"counts": [(11, -1)]}, "filter `trick` ended with counts that cannot be"),
        ({"feed": lambda data: data * 50}, "filter `trick` made 550 bytes out of 11, expected at most 122"),
        ({"rest": b"x" * 500}, "filter `trick` made 511 bytes out of 11, expected at most 122"),
    ],
)
def test_an_end_or_growth_that_cannot_be_is_a_fault(script, reason):
    with pytest.raises(SandboxFault, match=reason):
        stored(Stage(script))


def test_a_filter_that_declared_to_change_nothing_is_held_to_it():
    honest = filter_of(Stage({}), reverse=False, changes_content=False, changes_length=False)
    assert run(honest.reader(Hint()), [b"as it is"]) == b"as it is"
    liar = filter_of(Stage({"feed": flip}), reverse=False, changes_content=False, changes_length=False)
    with pytest.raises(SandboxFault, match="filter `trick` declared to change nothing, and did"):
        run(liar.reader(Hint()), [b"as it is"])


def test_the_record_says_what_ran_and_what_it_made_of_what():
    _, out, record = stored(Stage({"feed": flip}))
    assert out == flip(b"plain bytes")
    assert {name: record[name] for name in ("size", "stored", "main", "params")} == {
        "size": 11, "stored": 11, "main": "Main", "params": {},
    }  # fmt: skip


def test_an_empty_object_leaves_no_record():
    _, out, record = stored(Stage({}), b"")
    assert (out, record) == (b"", None)


def test_damage_on_disk_is_told_from_faults_of_the_code():
    one, out, record = stored(Stage({"feed": flip}))
    assert run(one.decoder(record), [out]) == b"plain bytes"
    for bad in (out[:-1], out + b"x", b"?" + out[1:]):
        with pytest.raises(CorruptData):
            run(one.decoder(record), [bad])


@pytest.mark.parametrize(
    ("undo", "reason"),
    [
        ({"feed": lambda data: data}, "filter `trick` did not give back what it took"),
        ({"feed": lambda data: flip(data)[:-1]}, "filter `trick` did not give back what it took"),
        ({"feed": lambda data: flip(data) + b"!"}, "filter `trick` undid more than the 11 bytes it took"),
        ({"feed": flip, "rest": b"!"}, "filter `trick` did not give back what it took"),
    ],
)
def test_code_that_does_not_undo_what_it_did_never_ends_well(undo, reason):
    one, out, record = stored(Stage({"feed": flip}, undo))
    with pytest.raises(SandboxFault, match=reason):
        run(one.decoder(record), [out])


def fails(data):
    raise SandboxFault("filter `trick` raised `InvalidTag`")


def test_code_that_fails_over_damaged_bytes_is_not_blamed_for_them():
    one, out, record = stored(Stage({"feed": flip}, {"feed": fails}), b"many plain bytes" * 10)
    for bad in (b"?" + out[1:], out[:-1]):
        with pytest.raises(CorruptData, match="stored bytes of filter `trick` are damaged"):
            run(one.decoder(record), [bad[:50], bad[50:]])
    decoder = one.decoder(record)
    assert decoder.feed(out[:50]) == decoder.feed(out[50:]) == b""
    with pytest.raises(SandboxFault, match="raised `InvalidTag`"):
        decoder.finish()


@pytest.mark.parametrize("name", ["size", "stored", "code", "main", "params", "plain", "sum"])
@pytest.mark.parametrize("wrong", [None, -1, True, [1], 1 << 70, "x"])
def test_a_record_that_is_none_is_refused(name, wrong):
    one, out, record = stored(Stage({"feed": flip}))
    if (name, wrong) == ("main", "x"):
        wrong = b"x"
    with pytest.raises(CorruptData):
        run(one.decoder({**record, name: wrong}), [out])


def test_a_finished_stream_takes_nothing_more():
    reader = filter_of(Stage({}), reverse=False).reader(Hint())
    run(reader, [b"x"])
    with pytest.raises(SandboxFault, match="filter `trick` is finished"):
        reader.feed(b"y")


def test_the_newest_output_is_held_back_until_the_end_is_proven():
    """A reader who knows the length would else take wrong bytes of the right length as complete."""
    team = Stage({"feed": flip}, {"feed": bytes.upper})
    one, out, record = stored(team, b"plain bytes" * 3)
    decoder = one.decoder(record)
    given = b"".join(decoder.feed(piece) for piece in (out[:11], out[11:22], out[22:]))
    assert len(given) == 22
    with pytest.raises(SandboxFault, match="did not give back"):
        decoder.finish()
    good = one.encoder(Hint())
    assert (good.feed(b"one"), good.feed(b"two"), good.finish()) == (b"", flip(b"one"), flip(b"two"))
