"""Pieces that pass in parts: the bytes of downloads and uploads are the same, in their order, for any parts."""

import io
import itertools
import os
from wsgiref.validate import validator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluice_core.describe import PROXY
from sluice_core.messages.bandwidth import GET, PUT, Flow
from sluice_middleware.bandwidth import wait_queue
from sluice_middleware.bandwidth.agent_client import CreditClient
from sluice_middleware.bandwidth.bodies import ThrottledBody, UploadInput
from sluice_middleware.bandwidth.token_account import TokenAccount
from sluice_middleware.swift import green
from sluice_middleware.swift.proxy_api import Request
from sluice_middleware.testing import ProxyStack
from sluice_middleware.wsgi.inputs import ObservedInput

PATH = "/v1/AUTH_a/c/o"
TARGET = ("AUTH_a", "c", "o")
BODY = os.urandom(300_000)
FLOWS = {method: Flow("AUTH_a", method) for method in (GET, PUT)}

pieces_of = st.lists(st.binary(max_size=40), max_size=8)
turns = st.lists(st.integers(1, 30), min_size=1, max_size=12)


class Turns:
    """A transfer that lets this many bytes pass each time, and records the requested sizes."""

    account = TokenAccount(FLOWS[GET])

    def __init__(self, sizes):
        self.sizes = sizes
        self.asked = []
        self.moved = self.closed = 0

    def acquire(self, size):
        self.moved += size

    def acquire_some(self, size):
        self.asked.append(size)
        paid = min(size, self.sizes[len(self.asked) % len(self.sizes)])
        self.moved += paid
        return paid

    def close(self):
        self.closed += 1


@given(pieces_of, turns)
def test_a_body_split_into_parts_is_unchanged(pieces, sizes):
    transfer = Turns(sizes)
    body = ThrottledBody(pieces, transfer)
    parts = list(body)
    assert b"".join(parts) == b"".join(pieces)
    assert transfer.moved == sum(map(len, parts))
    assert all(type(part) is bytes for part in parts)
    assert parts.count(b"") == pieces.count(b"")
    body.close()
    assert transfer.closed == 1


@given(st.lists(st.binary(min_size=1, max_size=40), min_size=1, max_size=8), turns, st.integers(0, 20))
def test_an_abandoned_body_charged_exactly_what_it_passed_on(pieces, sizes, taken):
    transfer = Turns(sizes)
    body = ThrottledBody(pieces, transfer)
    parts = list(itertools.islice(body, taken))
    body.close()
    assert transfer.moved == sum(map(len, parts))
    assert transfer.closed == 1


def test_a_large_piece_is_charged_in_parts_and_passes_as_it_came_while_nothing_is_limited():
    large = bytes(200_000)
    transfer = Turns([1 << 30])
    body = ThrottledBody([large, b"small"], transfer)
    assert b"".join(body) == large + b"small"
    assert transfer.asked == [65536, 65536, 65536, 200_000 - 3 * 65536, 5]
    transfer.account = TokenAccount(FLOWS[GET])
    transfer.account.free = True
    assert next(ThrottledBody([large], transfer)) is large


reads = st.one_of(st.tuples(st.just("read"), st.integers(0, 50)), st.tuples(st.just("readline"), st.integers(1, 50)))
whole = st.sampled_from([("read", None), ("read", -1), ("readline", None), ("readline", -1)])


@given(st.lists(st.sampled_from([b"ab", b"\n", b"c" * 30]), max_size=12), turns, st.lists(st.one_of(reads, whole)))
def test_an_input_split_into_parts_is_unchanged(words, sizes, calls):
    data = b"".join(words)
    transfer = Turns(sizes)
    body, at = UploadInput(io.BytesIO(data), lambda: transfer), 0
    for name, size in calls:
        found = getattr(body, name)(size)
        there = io.BytesIO(data)
        there.seek(at)
        expected = getattr(there, name)(size)
        if name == "read" and size is not None and size > 0:
            assert expected.startswith(found)
            assert bool(found) == bool(expected)
        else:
            assert found == expected
        at += len(found)
        assert transfer.moved == at
        assert not transfer.closed or at == len(data)
    assert b"".join(iter(lambda: body.read(7), b"")) == data[at:]
    assert transfer.closed


def test_a_read_returns_the_charged_part_and_the_next_read_the_rest():
    transfer = Turns([30])
    body = UploadInput(io.BytesIO(b"x" * 100), lambda: transfer)
    assert [len(body.read(50)) for _ in range(5)] == [30, 20, 30, 20, 0]
    assert transfer.asked == [50, 20, 50, 20]


def test_filters_over_a_split_input_see_its_end():
    class Ends:
        seen = b""

        def feed(self, data):
            self.seen += data
            return data

        def finish(self):
            return b"!"

    stream = Ends()
    given = UploadInput(io.BytesIO(BODY), lambda: Turns([1000, 70_000]))
    env = {"wsgi.input": given, "CONTENT_LENGTH": str(len(BODY))}
    body = ObservedInput(env, stream)
    assert b"".join(iter(lambda: body.read(65536), b"")) == BODY + b"!"
    assert stream.seen == BODY


# -- before a Swift in memory ---------------------------------------------------------------------------


@pytest.fixture
def stand(tmp_path, path, agent, monkeypatch):
    """A stack in which each waiting piece passes in parts of 2000 bytes."""
    monkeypatch.setattr(wait_queue, "_SOON", 2000 / 20 / 3e6)
    for flow in FLOWS.values():
        agent.set_rate(flow, 3e6)
    made = ProxyStack(tmp_path)
    made.proxy.limiter.client = line = CreditClient(path, PROXY)
    line.tick()
    yield made
    line.disconnect()
    agent.wait_briefly()
    assert made.all_closed()
    assert not [till for till in line._queues.values() if till.open]


def ask(stand, agent, method, body=b"", **headers):
    """The response through a WSGI checker, with its pieces."""
    env = Request.blank(PATH, method=method, body=body, headers=headers).environ
    env |= {"SCRIPT_NAME": "", "wsgi.run_once": False}
    found = {}

    def story():
        answer = validator(stand.proxy)(
            env, lambda status, fields, error=None: found.update(status=status, **dict(fields))
        )
        try:
            found["pieces"] = list(answer)
        finally:
            answer.close()

    agent.join(green.start_green(story))
    return found


@pytest.mark.parametrize(
    ("header", "expected"),
    [("", BODY), ("bytes=5-70004", BODY[5:70005]), ("bytes=-100000", BODY[-100_000:])],
    ids=["whole", "middle", "end"],
)
def test_lengths_and_ranges_are_those_of_the_object(stand, agent, header, expected):
    assert ask(stand, agent, "PUT", BODY, **{"Content-Type": "text/plain"})["status"] == "201 Created"
    assert stand.swift.objects[PATH].body == BODY
    found = ask(stand, agent, "GET", **({"Range": header} if header else {}))
    assert b"".join(found["pieces"]) == expected
    assert found["Content-Length"] == str(len(expected))
    assert found["status"][:3] == ("206" if header else "200")
    assert 2000 in map(len, found["pieces"])


def test_a_disconnect_within_a_piece_returns_its_credit(stand, agent):
    ask(stand, agent, "PUT", BODY, **{"Content-Type": "text/plain"})
    line = stand.proxy.limiter.client
    parts = []
    response = Request.blank(PATH).get_response(stand.proxy)

    def story():
        while 2000 not in parts:
            parts.append(len(next(response.app_iter)))

    agent.join(green.start_green(story))
    response.app_iter.close()
    till = line._queues[FLOWS[GET]]
    agent.wait_until(lambda: not till.account.requested and not till.account.credit)
    agent.wait_until(lambda: agent.given[FLOWS[GET]] == sum(parts))
