"""Several leases held at once: renewed in time, and released together."""

import pytest

from sluice_motifs.storage.leases import FRESH, LASTS, HeldLeases, LocalLeases


class CountedLeases(LocalLeases):
    renewed = 0

    def renew(self, lease):
        self.renewed += 1
        return super().renew(lease)


@pytest.fixture
def now():
    return [100.0]


@pytest.fixture
def leases(now):
    return CountedLeases(clock=lambda: now[0])


@pytest.fixture
def held(leases, now):
    return HeldLeases(leases, lambda: now[0])


def test_leases_are_renewed_when_the_oldest_of_them_is_not_fresh(leases, held, now):
    assert held.acquire({"a"})
    now[0] += FRESH * 0.6
    assert held.acquire({"b"})
    assert held.renew()
    assert leases.renewed == 0
    now[0] += FRESH * 0.6
    assert held.renew()
    assert leases.renewed == 2
    now[0] += FRESH * 0.6
    assert held.renew()
    assert leases.renewed == 2


def test_leases_of_which_one_is_over_are_not_renewed(leases, held, now):
    assert held.acquire({"a", "b"})
    now[0] += LASTS + 1
    assert leases.acquire("b")
    assert not held.renew()
    assert not held.renew(), "whoever asked first may not have listened"


def test_all_are_given_back_but_what_another_has(leases, held, now):
    with held:
        assert held.acquire({"a", "b", "c"})
        now[0] += LASTS + 1
        assert leases.acquire("b")
    assert leases.acquire("a")
    assert leases.acquire("c")
    assert leases.acquire("b") is None
