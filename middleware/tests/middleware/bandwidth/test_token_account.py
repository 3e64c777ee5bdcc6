"""The account of one flow in one worker, on a clock of its own."""

import pytest
from hypothesis import given
from hypothesis import strategies as some

from sluice_core.messages.bandwidth import Flow
from sluice_core.messages.credit import FREE
from sluice_middleware.bandwidth.token_account import BURST, LEAST, MOST, TokenAccount

FLOW = Flow("AUTH_a", "GET")
MB = 10**6


class Clock:
    def __init__(self):
        self.now = 100.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def account(clock):
    return TokenAccount(FLOW, clock)


def test_nothing_passes_without_credit(account):
    assert not account.try_charge(1)
    account.grant(10, 1.0)
    assert account.try_charge(10)
    assert not account.try_charge(1)


def test_an_account_requests_credit_at_once_and_again_when_half_is_used(account):
    assert account.bytes_to_request() == LEAST
    account.requested += LEAST
    assert account.bytes_to_request() == 0
    account.grant(LEAST, 0.0)
    assert account.try_charge(LEAST // 2)
    assert account.bytes_to_request() == 0
    assert account.try_charge(2)
    assert account.bytes_to_request() == LEAST // 2 + 2


def test_an_account_requests_a_tenth_of_a_second_of_its_rate(account):
    account.grant(1, 100 * MB)
    assert account.bytes_to_request() == MOST - 1
    account.grant(1, 20 * MB)
    assert account.bytes_to_request() == 2 * MB - 2


def test_an_account_requests_by_the_measured_speed_when_that_is_greater(account, clock):
    account.grant(100 * MB, 1000.0)
    for _ in range(20):
        clock.now += 0.05
        assert account.try_charge(2 * MB)
        account.bytes_to_request()
    account.credit = 0
    assert account.bytes_to_request() == pytest.approx(4 * MB, rel=0.1)


def test_bytes_waited_for_are_requested_in_addition(account):
    account.requested = LEAST
    assert account.bytes_to_request(needs=3 * LEAST) == 3 * LEAST


def test_debt_is_paid_before_anything_else_passes(account):
    account.charge(1000)
    assert account.bytes_to_request() == LEAST + 1000
    account.grant(1500, 1.0)
    assert not account.try_charge(501)
    assert account.try_charge(500)


def test_an_unlimited_flow_requests_and_owes_nothing(account):
    account.charge(10)
    account.grant(FREE, 0.0)
    assert account.try_charge(10**12)
    account.charge(10**12)
    assert (account.bytes_to_request(), account.release_surplus(), account.credit) == (0, 0, 0)
    account.require_credit()
    assert not account.try_charge(1)
    assert account.bytes_to_request() == LEAST


def test_surplus_is_released_once(account):
    account.grant(100, 1.0)
    assert account.try_charge(40)
    assert account.release_surplus() == 60
    assert account.release_surplus() == 0
    account.charge(5)
    assert account.release_surplus() == 0


def test_credit_idle_for_one_period_is_released(account):
    account.grant(100, 1.0)
    assert account.try_charge(1)
    assert account.release_if_idle() == 0
    assert account.release_if_idle() == 99


def test_a_detached_account_keeps_its_last_rate_and_a_bounded_burst(account, clock):
    account.grant(0, MB)
    account.detach()
    assert account.bytes_to_request() == 0
    passed = 0
    for _ in range(1000):
        clock.now += 0.01
        while account.try_charge(10_000):
            passed += 10_000
    assert passed == pytest.approx(10 * MB, rel=0.01)
    clock.now += 3600
    burst = 0
    while account.try_charge(10_000):
        burst += 10_000
    assert burst == pytest.approx(BURST * MB, rel=0.05)
    assert account.seconds_until(100_000) == pytest.approx(0.1, rel=0.1)


def test_a_piece_larger_than_the_burst_passes_while_detached(account, clock):
    account.grant(0, 1000.0)
    account.detach()
    assert not account.try_charge(MB)
    clock.now += 1001
    assert account.try_charge(MB)


@pytest.mark.parametrize("told", [None, FREE])
def test_a_detached_flow_without_a_rate_passes_and_owes_nothing(account, told):
    if told is not None:
        account.grant(told, 0.0)
        account.require_credit()
    account.detach()
    assert account.try_charge(10**12)
    assert account.seconds_until(10**12) == 0.0
    account.charge(10**12)
    account.reattach(connected_anew=True)
    assert (account.credit, account.bytes_to_request()) == (0, LEAST)


def test_a_detached_flow_with_rate_zero_still_moves(account, clock):
    account.grant(0, 0.0)
    account.detach()
    assert 0 < account.seconds_until(LEAST) <= 1.01
    clock.now += 1.01
    assert account.try_charge(LEAST)


def test_self_filled_credit_is_dropped_when_the_agent_returns(account, clock):
    account.grant(0, MB)
    account.detach()
    clock.now += 1
    assert account.try_charge(1)
    account.reattach()
    assert account.credit == 0
    assert not account.try_charge(1)


def test_after_a_reconnect_all_credit_is_requested_again(account):
    account.requested = LEAST
    account.grant(FREE, 0.0)
    account.detach()
    assert account.try_charge(1)
    account.reattach(connected_anew=True)
    assert account.bytes_to_request() == LEAST


STEPS = some.lists(
    some.one_of(
        some.tuples(some.just("take"), some.integers(1, 1 << 20)),
        some.tuples(some.just("grant"), some.integers(1, 1 << 20)),
        some.tuples(some.just("charge"), some.integers(1, 1 << 20)),
        some.tuples(some.just("back"), some.just(0)),
        some.tuples(some.just("wait"), some.integers(1, 1000)),
    ),
    max_size=60,
)


@given(STEPS)
def test_bytes_passed_never_exceed_credit_granted_less_returned(steps):
    clock = Clock()
    account = TokenAccount(FLOW, clock)
    balance = 0
    for step, size in steps:
        if step == "take":
            if account.try_charge(size):
                balance -= size
                assert balance >= 0
            else:
                assert balance < size
        elif step == "grant":
            account.grant(size, 1000.0)
            balance += size
        elif step == "charge":
            account.charge(size)
            balance -= size
        elif step == "back":
            balance -= account.release_surplus()
        else:
            clock.now += size / 1000
        assert account.credit == balance


@given(STEPS, some.integers(1, 10 << 20))
def test_a_refused_piece_passes_once_its_requested_credit_came(steps, piece):
    clock = Clock()
    account = TokenAccount(FLOW, clock)
    for step, size in steps:
        if step == "grant" and account.requested:
            account.grant(min(size, account.requested), size)
        elif step == "take":
            account.try_charge(size)
        elif step == "charge":
            account.charge(size)
        else:
            clock.now += size / 1000
        account.requested += account.bytes_to_request()
    if account.try_charge(piece):
        return
    account.requested += account.bytes_to_request(needs=piece)
    account.grant(account.requested, 1.0)
    assert account.try_charge(piece)


@given(some.floats(1, 1e10), some.lists(some.floats(0.001, 2.0), min_size=1, max_size=60), some.integers(1, 1 << 20))
def test_a_detached_account_passes_at_most_its_rate_and_one_burst(rate, pauses, piece):
    clock = Clock()
    account = TokenAccount(FLOW, clock)
    account.grant(0, rate)
    account.detach()
    passed = 0
    for pause in pauses:
        clock.now += pause
        for _ in range(50):
            if not account.try_charge(piece):
                break
            passed += piece
    assert passed <= rate * sum(pauses) + max(rate * BURST, LEAST, piece) + 1
    clock.now += account.seconds_until(piece) + 0.001 + 2 / rate
    assert account.try_charge(piece)
