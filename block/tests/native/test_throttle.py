"""``throttle``: which requests wait, and how a change or an end reaches waiting ones.

``benchmarks/volumes/throttle.py`` measures how exact the rates are; bounds here are wide, for busy machines.
"""

import errno
import time

import pytest
from tests.support.block.nbd import connected, serve

from sluice_block.stack.page import Limits

pytestmark = pytest.mark.service

MB = 1 << 20
#: Rates at which a second request would wait for minutes, in bytes or operations per second.
CRAWL = 1
#: The client's own errno for a request whose connection is lost: the front of a volume repeats it.
LOST = errno.ENOTCONN


@pytest.fixture
def volume(tmp_path, built, page_file):
    given = (f"nop-page={page_file}", f"throttle-page={page_file}")
    with serve(tmp_path, built, ["nop", "throttle"], "memory", "64M", *given) as server:
        yield server


@pytest.fixture
def client(volume):
    with connected(volume) as client:
        yield client


def wait_until_under_way(page, volume, count):
    """Wait until ``count`` requests are in the chain and unanswered."""
    while page.counters().under_way != count:
        assert volume.process.poll() is None


def wait_until_one_passed(page, volume, count):
    """Wait until one of ``count`` writes has passed the throttle and the others wait for it."""
    while page.counters().writes == 0:
        assert volume.process.poll() is None
    wait_until_under_way(page, volume, count - 1)


def seconds(work):
    begin = time.monotonic()
    work()
    return time.monotonic() - begin


def test_without_limits_nothing_waits(page, client):
    client.ask("begin", "write", 16, 4096)
    assert client.ask("finish") == [0] * 16
    assert page.counters().waited == 0


@pytest.mark.parametrize(
    ("limits", "kind"),
    [
        (Limits(read_bytes=MB), "read"),
        (Limits(write_bytes=MB), "write"),
        (Limits(both_bytes=MB), "read"),
        (Limits(both_bytes=MB), "write"),
        (Limits(read_ops=16), "read"),
        (Limits(write_ops=16), "write"),
        (Limits(both_ops=16), "read"),
        (Limits(both_ops=16), "write"),
    ],
    ids=str,
)
def test_a_limit_lets_a_second_s_worth_pass_in_a_second(page, client, limits, kind):
    page.set_limits(limits)
    client.ask("begin", kind, 16, MB // 16)  # of which the last starts after 15/16 s
    assert seconds(lambda: client.ask("finish")) > 0.85
    # each waits until the ones before have passed: 0 + 1 + ... + 15 sixteenths
    assert page.counters().waited > 0.9 * sum(range(16)) / 16


@pytest.mark.parametrize(
    ("limits", "kind"),
    [(Limits(read_bytes=CRAWL, read_ops=CRAWL), "write"), (Limits(write_bytes=CRAWL, write_ops=CRAWL), "read")],
)
def test_a_limit_of_one_direction_does_not_hold_up_the_other(page, client, limits, kind):
    page.set_limits(limits)
    client.ask("begin", kind, 16, 4096)
    assert client.ask("finish") == [0] * 16
    assert page.counters().waited == 0


def test_reads_pass_while_writes_wait_as_long_as_threads_are_left(page, volume, client):
    page.set_limits(Limits(write_bytes=CRAWL))
    client.ask("begin", "write", 15, 4096)
    wait_until_under_way(page, volume, 15)
    assert client.read(4096, 0) == bytes(4096)  # the 16th thread's


@pytest.mark.parametrize("operation", ["zero", "trim"])
def test_zero_and_trim_are_operations_of_no_bytes(page, client, operation):
    page.set_limits(Limits(write_bytes=CRAWL))
    for number in range(4):
        client.ask(operation, 65536, number * 65536)
    assert page.counters().waited == 0
    page.set_limits(Limits(write_ops=5))
    assert seconds(lambda: [client.ask(operation, 65536, number * 65536) for number in range(4)]) > 0.5


def test_a_flush_is_an_operation_of_writes(page, client):
    page.set_limits(Limits(write_ops=5))
    assert seconds(lambda: [client.ask("flush") for _ in range(4)]) > 0.5


@pytest.mark.parametrize("lifted", [Limits(), Limits(write_bytes=1 << 40), Limits(read_bytes=CRAWL)], ids=str)
def test_a_change_reaches_those_that_wait_already(page, volume, client, lifted):
    page.set_limits(Limits(write_bytes=CRAWL))
    client.ask("begin", "write", 8, 4096)
    wait_until_under_way(page, volume, 8)
    page.set_limits(lifted)
    assert client.ask("finish") == [0] * 8


def test_a_request_larger_than_a_second_s_worth_passes_and_later_ones_wait(page, client):
    page.set_limits(Limits(both_bytes=MB))
    assert seconds(lambda: client.write(bytes(2 * MB), 0)) > 1.8
    assert page.counters().write_latency.quantile(0.5) > 1.8


def test_who_waits_for_a_limit_of_both_directions_is_served_in_order(page, volume, client):
    page.set_limits(Limits(both_ops=CRAWL))
    for number, kind in enumerate(["write", "read", "read", "write", "write", "read"]):
        client.ask("begin", kind, 1, 512)
        wait_until_one_passed(page, volume, number + 1)
    page.set_limits(Limits(both_ops=20))
    client.ask("finish")
    assert client.ask("order") == list(range(6))


def test_there_is_no_burst_after_idling(page, client):
    page.set_limits(Limits(read_ops=10))
    client.read(512, 0)
    time.sleep(1)  # the condition itself: a second without requests
    before = page.counters().waited
    client.ask("begin", "read", 4, 512)
    client.ask("finish")
    assert page.counters().waited - before > 0.9 * (0.1 + 0.2 + 0.3) - 0.06


def test_what_a_limit_gave_in_a_short_stall_is_made_up_for(page, client):
    page.set_limits(Limits(read_ops=100))
    waits = []
    for _ in range(5):  # one attempt without delays of the machine is enough
        time.sleep(0.2)  # the rest is lost
        client.read(512, 0)
        time.sleep(0.08)  # the condition itself: the storage has all requests, so none is sent
        before = page.counters().waited
        client.ask("begin", "read", 6, 512)
        client.ask("finish")
        waits.append(page.counters().waited - before)
    assert min(waits) < 0.02, "without it the last one waits for 40 ms"


def test_those_that_wait_when_nbdkit_is_told_to_end_pass_at_once(page, volume, client):
    page.set_limits(Limits(both_ops=CRAWL))
    client.ask("begin", "write", 16, 4096)
    wait_until_one_passed(page, volume, 16)
    volume.process.terminate()
    assert seconds(lambda: client.ask("finish")) < 5
    counters = page.counters()
    assert (counters.writes, counters.under_way, counters.errors_other) == (16, 0, 0)
    # nbdkit may close the connection before the last answer; no answer may be an error
    assert set(client.ask("finish")) <= {0, LOST}


def test_a_killed_nbdkit_answers_nothing_with_an_error(page, volume, client):
    page.set_limits(Limits(both_ops=CRAWL))
    client.ask("begin", "write", 16, 4096)
    wait_until_one_passed(page, volume, 16)
    volume.process.kill()
    answers = client.ask("finish")
    assert set(answers) <= {0, LOST}
    assert answers.count(LOST) >= 15
