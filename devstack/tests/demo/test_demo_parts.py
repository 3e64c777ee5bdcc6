"""The parts of the demo."""

from __future__ import annotations

import hashlib
import threading
from dataclasses import replace

import pytest
import zstandard

from sluice_aio.base.swift_http import SwiftResponse
from sluice_aio.demo import corpus, verify
from sluice_aio.demo.demo import Line, Table, human
from sluice_aio.demo.upload import Upload, Uploader
from sluice_aio.demo.watch import IN_FORCE, INSIDE, NOT_IN_FORCE, OUTSIDE, UNDECIDABLE, UNSETTLED, Seen, Watcher

SAMPLES = corpus.choose(40)


def upload(name="a", size=5000, shrinks=True, status=201):
    return Upload(corpus.Sample(name, b"x" * size, "", "", shrinks), 0.0, 1.0, status)


def test_the_choice_of_files_is_the_same_every_time():
    assert [one.name for one in corpus.choose(40)] == [one.name for one in SAMPLES]
    assert len({one.name for one in SAMPLES}) == len(SAMPLES) == 40


def test_the_choice_has_files_that_shrink_and_files_that_do_not():
    shrinking = [one for one in SAMPLES if one.shrinks]
    assert 20 <= len(shrinking) < 40
    for one in shrinking:
        assert len(one.body) >= corpus.MIN_SIZE
        assert len(zstandard.compress(one.body, 1)) <= 0.8 * len(one.body)


def test_every_sample_knows_its_digests():
    for one in SAMPLES:
        assert one.sha256 == hashlib.sha256(one.body).hexdigest()
        assert one.md5 == hashlib.md5(one.body).hexdigest()


@pytest.mark.parametrize(
    ("shrinks", "judged", "files", "good"),
    [
        (True, INSIDE, [900, 900, 900], True),
        (True, INSIDE, [5000, 5000, 5000], False),  # should have been compressed
        (True, OUTSIDE, [5000, 5000, 5000], True),
        (True, OUTSIDE, [900, 900, 900], False),  # should not have been
        (False, INSIDE, [5000, 5000, 5000], True),
        (False, INSIDE, [900, 900, 900], False),
        (True, UNDECIDABLE, [900, 900, 900], True),
        (True, UNDECIDABLE, [5000, 5000, 5000], True),
        (True, UNDECIDABLE, [5000, 900, 900], False),  # replicas differ
        (True, INSIDE, [900, 900], False),  # a replica is missing
        (False, OUTSIDE, [5100, 5100, 5100], False),  # grown
    ],
)
def test_the_disks_must_agree_with_the_judgement(shrinks, judged, files, good):
    check = verify.check_disks([upload(shrinks=shrinks)], {"a": judged}, {"a": files})
    assert check.good is good, check.detail


def test_a_failed_upload_is_no_object_but_a_fault():
    failed = upload(status=503)
    assert verify.check_disks([failed], {"a": INSIDE}, {}).good
    assert not verify.check_uploads([failed, upload("b")]).good
    assert verify.check_uploads([upload("b")]).good


def test_a_run_on_one_side_only_proves_nothing():
    uploads = [upload(str(number)) for number in range(40)]
    both = {one.sample.name: INSIDE if number % 2 else OUTSIDE for number, one in enumerate(uploads)}
    assert verify.check_coverage(uploads, both).good
    for word in (INSIDE, OUTSIDE, UNDECIDABLE):
        assert not verify.check_coverage(uploads, dict.fromkeys(both, word)).good


class OneObject:
    """Answers GET and HEAD of every object, and the listing, with the given values."""

    def __init__(self, sample, **changes):
        self.sample = replace(sample, **changes)

    def request(self, method, path, *_):
        headers = {"content-length": str(len(self.sample.body)), "etag": self.sample.md5}
        return SwiftResponse(200, headers, self.sample.body if method == "GET" else b"")

    def listing(self, container):
        return [{"name": self.sample.name, "bytes": len(self.sample.body), "hash": self.sample.md5}]


@pytest.mark.parametrize(
    ("changes", "good"),
    [
        ({}, (True, True, True)),
        ({"body": b"other"}, (False, False, False)),
        ({"md5": "0" * 32}, (True, False, False)),
        ({"name": "stranger"}, (True, True, False)),
    ],
)
def test_what_clients_see_is_compared_with_what_was_sent(changes, good):
    swift = OneObject(SAMPLES[0], **changes)
    uploads = [Upload(SAMPLES[0], 0.0, 1.0, 201)]
    checks = [*verify.check_answers(swift, "box", uploads), verify.check_listing(swift, "box", uploads)]
    assert tuple(check.good for check in checks) == good


class Sink:
    """Receives uploads, and reports when enough have arrived."""

    def __init__(self, enough):
        self.enough = threading.Semaphore(0)
        self.names = []

    def request(self, method, path, body):
        self.names.append((method, path, body))
        self.enough.release()
        return SwiftResponse(201, {}, b"")

    def close(self):
        pass


def test_the_uploader_sends_each_sample_once_and_faster_when_told_to():
    sink = Sink(5)
    uploader = Uploader(sink, "box", SAMPLES[:5])
    uploader.start(0.01)
    uploader.set_rate(200)
    for _ in range(5):
        assert sink.enough.acquire(timeout=10)
    uploader.stop()
    assert sorted(path for _, path, _ in sink.names) == sorted(f"box/{one.name}" for one in SAMPLES[:5])
    assert len(uploader.done) == 5
    assert all(one.status == 201 and one.begin <= one.end for one in uploader.done)
    assert uploader.logical_bytes() == sum(len(one.body) for one in SAMPLES[:5])


def test_an_uploader_that_never_began_stops_too():
    uploader = Uploader(Sink(0), "box", [])
    uploader.stop()
    assert uploader.done == []


def answer(state, nodes=1, epoch=1):
    return {"state": state, "enforced": {"nodes": nodes, "total": 1}, "epoch": epoch, "observed": None}


def test_the_watcher_keeps_every_poll_and_survives_a_failure():
    told = [answer("waiting"), ConnectionError("away"), answer("active"), answer("waiting", epoch=2)]
    finished = threading.Event()

    def ask():
        if len(told) == 1:
            finished.set()
            return told[0]
        now = told.pop(0)
        if isinstance(now, Exception):
            raise now
        return now

    watcher = Watcher(ask, ConnectionError)
    watcher.start()
    assert finished.wait(10)
    watcher.stop()
    assert [poll.says for poll in watcher.polls[:4]] == [NOT_IN_FORCE, UNSETTLED, IN_FORCE, NOT_IN_FORCE]
    assert all(one.answered <= two.asked for one, two in zip(watcher.polls, watcher.polls[1:], strict=False))
    assert watcher.taken_back()


def test_columns_are_aligned_whatever_stands_in_them():
    table = Table()
    lines = [
        Line("slow", 1.0, Seen(), 0, 0, 0),
        Line("slow again", 8.0, Seen("waiting", 12, 12, {"PUTS_SEC": 8.0}), 1234, 10**9, 10**8),
        Line("fast", 8.0, Seen(error="away"), 7, 5, 5),
    ]
    assert {len(table.row(line)) for line in lines} == {len(Table.head())}


@pytest.mark.parametrize(
    ("size", "text"),
    [(0, "0 B"), (1023, "1023 B"), (1024, "1.0 KiB"), (1536 * 1024, "1.5 MiB"), (5 << 30, "5.0 GiB")],
)
def test_bytes_are_printed_for_people(size, text):
    assert human(size) == text
