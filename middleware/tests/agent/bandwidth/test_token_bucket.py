"""The token bucket: it never holds more than its size, and a rate counts from the moment at which it is set."""

import pytest

from sluice_agent.bandwidth.token_bucket import BURST_SECONDS, TokenBucket

RATE = 1000.0
SIZE = RATE * BURST_SECONDS


@pytest.fixture
def bucket():
    made = TokenBucket(RATE, 10.0)
    made.tokens = 0.0
    return made


def test_a_full_bucket_overflows_and_holds_no_more(bucket):
    assert bucket.refill(10.1) == 0
    assert bucket.refill(11.1) == pytest.approx(1.1 * RATE - SIZE)
    assert bucket.tokens == SIZE
    assert bucket.refill(11.2) == pytest.approx(0.1 * RATE)
    assert bucket.put_back(5.0) == 5.0
    assert bucket.tokens == SIZE


def test_another_rate_counts_from_now_on(bucket):
    assert bucket.set_rate(10 * RATE, 10.1) == 0
    assert bucket.tokens == pytest.approx(0.1 * RATE)
    bucket.refill(10.2)
    assert bucket.tokens == pytest.approx(1.1 * RATE)
    assert bucket.set_rate(RATE, 10.2) == pytest.approx(1.1 * RATE - SIZE)
