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


def test_nothing_passes_before_it_is_given(account):
    assert not account.take(1)
    account.granted(10, 1.0)
    assert account.take(10)
    assert not account.take(1)


def test_an_account_asks_at_once_and_again_at_half_use(account):
    assert account.wish() == LEAST
    account.asked += LEAST
    assert account.wish() == 0
    account.granted(LEAST, 0.0)
    assert account.take(LEAST // 2)
    assert account.wish() == 0
    assert account.take(2)
    assert account.wish() == LEAST // 2 + 2


def test_it_asks_for_a_tenth_of_a_second_of_its_rate(account):
    account.granted(1, 100 * MB)
    assert account.wish() == MOST - 1
    account.granted(1, 20 * MB)
    assert account.wish() == 2 * MB - 2


def test_it_asks_for_as_fast_as_bytes_pass_though_its_rate_is_small(account, clock):
    account.granted(100 * MB, 1000.0)
    for _ in range(20):
        clock.now += 0.05
        assert account.take(2 * MB)
        account.wish()
    account.credit = 0
    assert account.wish() == pytest.approx(4 * MB, rel=0.1)


def test_what_is_waited_for_is_asked_for_beside(account):
    account.asked = LEAST
    assert account.wish(needs=3 * LEAST) == 3 * LEAST


def test_what_passed_unpaid_is_paid_before_anything_else_passes(account):
    account.charge(1000)
    assert account.wish() == LEAST + 1000
    account.granted(1500, 1.0)
    assert not account.take(501)
    assert account.take(500)


def test_a_free_flow_asks_for_nothing_and_owes_nothing(account):
    account.charge(10)
    account.granted(FREE, 0.0)
    assert account.take(10**12)
    account.charge(10**12)
    assert (account.wish(), account.give_back(), account.credit) == (0, 0, 0)
    account.anew()
    assert not account.take(1)
    assert account.wish() == LEAST


def test_surplus_goes_back_once(account):
    account.granted(100, 1.0)
    assert account.take(40)
    assert account.give_back() == 60
    assert account.give_back() == 0
    account.charge(5)
    assert account.give_back() == 0


def test_credit_that_lay_idle_for_a_turn_goes_back(account):
    account.granted(100, 1.0)
    assert account.take(1)
    assert account.rest() == 0
    assert account.rest() == 99


def test_alone_it_keeps_its_last_rate_and_a_bounded_burst(account, clock):
    account.granted(0, MB)
    account.go_alone()
    assert account.wish() == 0
    passed = 0
    for _ in range(1000):
        clock.now += 0.01
        while account.take(10_000):
            passed += 10_000
    assert passed == pytest.approx(10 * MB, rel=0.01)
    clock.now += 3600
    burst = 0
    while account.take(10_000):
        burst += 10_000
    assert burst == pytest.approx(BURST * MB, rel=0.05)
    assert account.seconds(100_000) == pytest.approx(0.1, rel=0.1)


def test_a_piece_beyond_the_burst_passes_alone_too(account, clock):
    account.granted(0, 1000.0)
    account.go_alone()
    assert not account.take(MB)
    clock.now += 1001
    assert account.take(MB)


@pytest.mark.parametrize("told", [None, FREE])
def test_alone_a_flow_without_a_rate_passes_and_owes_nothing_afterwards(account, told):
    if told is not None:
        account.granted(told, 0.0)
        account.anew()
    account.go_alone()
    assert account.take(10**12)
    assert account.seconds(10**12) == 0.0
    account.charge(10**12)
    account.go_along(connected_anew=True)
    assert (account.credit, account.wish()) == (0, LEAST)


def test_alone_at_a_rate_of_nothing_it_still_crawls(account, clock):
    account.granted(0, 0.0)
    account.go_alone()
    assert 0 < account.seconds(LEAST) <= 1.01
    clock.now += 1.01
    assert account.take(LEAST)


def test_what_an_account_filled_itself_with_is_gone_when_the_agent_is_back(account, clock):
    account.granted(0, MB)
    account.go_alone()
    clock.now += 1
    assert account.take(1)
    account.go_along()
    assert account.credit == 0
    assert not account.take(1)


def test_a_new_agent_is_asked_for_all_of_it_again_and_nothing_is_free_any_more(account):
    account.asked = LEAST
    account.granted(FREE, 0.0)
    account.go_alone()
    assert account.take(1)
    account.go_along(connected_anew=True)
    assert account.wish() == LEAST


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
def test_never_more_passes_than_was_given_and_less_given_back(steps):
    clock = Clock()
    account = TokenAccount(FLOW, clock)
    balance = 0
    for step, size in steps:
        if step == "take":
            if account.take(size):
                balance -= size
                assert balance >= 0
            else:
                assert balance < size
        elif step == "grant":
            account.granted(size, 1000.0)
            balance += size
        elif step == "charge":
            account.charge(size)
            balance -= size
        elif step == "back":
            balance -= account.give_back()
        else:
            clock.now += size / 1000
        assert account.credit == balance


@given(STEPS, some.integers(1, 10 << 20))
def test_it_never_stalls_what_it_refuses_is_asked_for_and_passes_once_that_came(steps, piece):
    clock = Clock()
    account = TokenAccount(FLOW, clock)
    for step, size in steps:
        if step == "grant" and account.asked:
            account.granted(min(size, account.asked), size)
        elif step == "take":
            account.take(size)
        elif step == "charge":
            account.charge(size)
        else:
            clock.now += size / 1000
        account.asked += account.wish()
    if account.take(piece):
        return
    account.asked += account.wish(needs=piece)
    account.granted(account.asked, 1.0)
    assert account.take(piece)


@given(some.floats(1, 1e10), some.lists(some.floats(0.001, 2.0), min_size=1, max_size=60), some.integers(1, 1 << 20))
def test_alone_it_passes_its_rate_and_one_burst_at_most(rate, pauses, piece):
    clock = Clock()
    account = TokenAccount(FLOW, clock)
    account.granted(0, rate)
    account.go_alone()
    passed = 0
    for pause in pauses:
        clock.now += pause
        for _ in range(50):
            if not account.take(piece):
                break
            passed += piece
    assert passed <= rate * sum(pauses) + max(rate * BURST, LEAST, piece) + 1
    clock.now += account.seconds(piece) + 0.001 + 2 / rate
    assert account.take(piece)
