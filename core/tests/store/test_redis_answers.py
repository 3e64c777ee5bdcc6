"""The error text of a Redis that refuses a command reaches the caller unchanged, by every access."""

import asyncio

import pytest
from tests.support.recordings.redis_answers import READ, answering, by_async_client, by_client, recorded, redis_away

from sluice_aio.base.ports import HOST, free_port
from sluice_core.errors import PeerError
from sluice_core.store.operation import Operation
from sluice_core.store.store import AsyncStore, Store

REFUSING = [name for name in recorded() if name != "as usual"]
#: Cases that refuse reads in the way they refuse writes.
REFUSING_ALL = [
    *("wants a password", "another password", "a user without rights"),
    *("loading", "busy", "full of clients"),
]
ACCESSES = {
    "client": by_client,
    "async client": lambda url: asyncio.run(by_async_client(url)),
    "blocking connection": lambda url: asyncio.run(by_async_client(url, READ)),
}


@pytest.mark.parametrize("access", ACCESSES)
@pytest.mark.parametrize("state", recorded())
def test_each_access_ends_as_it_did_with_the_real_one(state, access):
    with answering(state) as url:
        assert ACCESSES[access](url) == recorded()[state]["outcomes"][access]


@pytest.mark.parametrize("state", REFUSING)
def test_a_refusal_is_said_by_at_least_one_access(state):
    outcomes = recorded()[state]["outcomes"]
    assert set(outcomes.values()) != {"done"}
    assert outcomes["client"] == outcomes["async client"]


@pytest.mark.parametrize(
    "state", [name for name in REFUSING if recorded()[name]["outcomes"]["blocking connection"] != "done"]
)
def test_a_read_that_waits_is_refused_in_the_words_of_a_write(state):
    """Both name the command if Redis does, and a replica refuses a write for another reason."""
    outcomes = recorded()[state]["outcomes"]
    if state != "a replica without its master":
        assert outcomes["blocking connection"].replace("'get'", "'set'") == outcomes["client"]


@pytest.mark.parametrize("count", [1, 2])
def test_one_that_takes_no_more_clients_says_so_for_any_number_of_commands(count):
    operation = Operation((("GET", "key"),) * count, list, blocking=True)
    with answering("full of clients") as url:
        assert asyncio.run(by_async_client(url, operation)) == "ConnectionError: max number of clients reached"


def test_a_redis_that_does_not_listen_is_called_so_in_the_words_that_other_tests_have():
    port = free_port()
    store, expected = Store(f"redis://{HOST}:{port}/0"), str(redis_away()).replace(":1", f":{port}")
    with pytest.raises(PeerError) as caught:
        store.head()
    store.close()
    assert str(caught.value) == expected


def test_no_password_is_said():
    async def story(url):
        store = AsyncStore(url)
        with pytest.raises(PeerError) as caught:
            await store.head()
        await store.close()
        return str(caught.value)

    with answering("another password") as url:
        assert "guess" in url
        assert "guess" not in asyncio.run(story(url))
