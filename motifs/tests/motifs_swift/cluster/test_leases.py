"""Leases of motifs in Redis: one holder, growing tokens, and none before lost ones have expired."""

import time

import pytest

from sluice_core.errors import PeerError
from sluice_core.store.store import Store
from sluice_motifs_swift.cluster.leases import acquire_lease, release_leases, renew_lease

#: Seconds of a lease; no test takes as long.
LONG = 60.0
SHORT = 0.05


def eventually(question):
    end = time.monotonic() + 10.0
    while not (answer := question()):
        assert time.monotonic() < end
        time.sleep(0.01)
    return answer


@pytest.fixture
def store(redis_server):
    store = Store(redis_server.url, "leases")
    store.client.flushall()
    yield store
    store.close()


@pytest.fixture
def run(store):
    """Runs an operation, in a Redis whose run has lasted longer than a lease."""
    with pytest.raises(PeerError, match="may be forgotten"):
        store.run(acquire_lease(store.keys, "a/c/o", LONG))
    store.client.hset(store.keys.motif_leases, "since", 0)
    return lambda build, *given: store.run(build(store.keys, *given))


def test_a_lease_has_one_holder_until_it_is_given_back(run):
    token = run(acquire_lease, "a/c/o", LONG)
    assert token
    assert run(acquire_lease, "a/c/o", LONG) is None
    assert run(acquire_lease, "a/c/other", LONG) > token
    assert run(renew_lease, "a/c/o", token, LONG)
    other = run(acquire_lease, "a/c/third", LONG)
    assert run(release_leases, {"a/c/o": token, "a/c/third": other}) == 2
    assert run(acquire_lease, "a/c/o", LONG) > other
    assert run(acquire_lease, "a/c/third", LONG) > other


def test_a_lease_that_is_over_is_neither_renewed_nor_given_back(run):
    token = run(acquire_lease, "a/c/o", SHORT)
    later = eventually(lambda: run(acquire_lease, "a/c/o", LONG))
    assert later > token
    assert not run(renew_lease, "a/c/o", token, LONG)
    other = run(acquire_lease, "a/c/third", LONG)
    assert run(release_leases, {"a/c/o": token, "a/c/third": other}) == 1
    assert run(renew_lease, "a/c/o", later, LONG)


@pytest.mark.parametrize("forgotten", ["wiped", "restarted"])
def test_what_forgot_its_leases_grants_none_before_they_have_ended(store, run, forgotten):
    token = run(acquire_lease, "a/c/o", LONG)
    if forgotten == "wiped":
        store.client.flushall()
    else:  # another process has another run id
        store.client.hset(store.keys.motif_leases, "run", "0" * 40)
    with pytest.raises(PeerError, match="may be forgotten"):
        run(acquire_lease, "a/c/other", LONG)
    assert run(renew_lease, "a/c/o", token, LONG) == (forgotten == "restarted")
    store.client.hset(store.keys.motif_leases, "since", 0)
    assert run(acquire_lease, "a/c/third", LONG) > token


def test_leases_are_granted_again_after_as_long_as_one_lasts(store):
    def acquired():
        try:
            return store.run(acquire_lease(store.keys, "a/c/o", SHORT))
        except PeerError:
            return None

    assert eventually(acquired)
