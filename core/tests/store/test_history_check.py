"""The digest of a change: equal in Redis and in Python, and compared at each read of changes."""

import asyncio
from dataclasses import replace

import pytest

from sluice_core.messages.registry import Term
from sluice_core.store.change_stream import stream_fields
from sluice_core.store.history_check import change_digest, entry_digest
from sluice_core.store.records import Draft, Gap, Replaced
from sluice_core.store.store import AsyncStore
from sluice_core.testing import assignment


def commit(store, name, **more):
    return store.commit(Draft("test", puts=(assignment(f"{name}.0", f"AUTH_{name}", **more),)))


def lose_everything(store):
    """The state of a replica that was promoted before it received any change, under the same history."""
    with store.client.pipeline(transaction=True) as pipeline:
        pipeline.set(store.keys.epoch, 0)
        pipeline.delete(store.keys.assignments, store.keys.changes)
        pipeline.execute()


def test_redis_and_readers_have_the_same_digest_of_a_change(store):
    commit(store, "a")
    commit(store, "ü" * 2000, params={"text": "x" * 5000})
    store.commit(Draft("t", entries=(Term("T", ("a", "b")).entry(),)))
    store.commit(Draft("t", policy_drops=("a",)))  # the script adds the ids of dropped assignments
    changes = store.changes_after(0)
    digests = [store.run(change_digest(store.keys, epoch)) for epoch in range(1, 5)]
    assert [one.digest for one in changes] == digests
    assert len(set(digests)) == 4
    assert changes[3].drops == ("a.0",)
    assert store.load().digest == digests[3]
    assert store.run(change_digest(store.keys, 5)) == ""


def test_changes_of_the_same_moment_and_length_have_different_digests(store):
    commit(store, "a")
    ((_, raw),) = store.client.xrange(store.keys.changes)
    fields = dict(stream_fields(raw))
    for name, text in ((b"change", b"AUTH_a"), (b"history", fields[b"history"][:6])):
        other = {**fields, name: fields[name].replace(text, b"AUTH_b")}
        assert len(other[name]) == len(fields[name])
        assert entry_digest(other) != entry_digest(fields)


def test_a_reader_that_waits_notices_that_its_change_was_replaced(store, redis_server):
    async def story():
        commit(store, "a")
        (known,) = store.changes_after(0)
        mine = AsyncStore(redis_server.url, store.keys.prefix)
        waiting = asyncio.create_task(mine.changes_after(1, block_ms=3000, digest=known.digest))
        while not store.client.info("clients")["blocked_clients"]:
            await asyncio.sleep(0.01)
        lose_everything(store)
        commit(store, "x")
        commit(store, "y")  # wakes the reader, which waits for the second change
        assert isinstance(await waiting, Replaced)
        (first, second) = store.changes_after(0)
        found = await mine.changes_after(1, digest=first.digest)
        assert [one.epoch for one in found] == [second.epoch]
        await mine.close()

    asyncio.run(asyncio.wait_for(story(), 30))


def test_a_change_that_was_trimmed_is_a_gap_and_no_other_history(store):
    for name in "abc":
        commit(store, name)
    (first, *_) = store.changes_after(0)
    store.client.xtrim(store.keys.changes, maxlen=1, approximate=False)
    found = store.changes_after(1, digest=first.digest)
    assert isinstance(found, Gap)
    assert not isinstance(found, Replaced)


@pytest.mark.parametrize("digest", ["", "d"])
def test_the_digest_of_a_change_is_no_part_of_what_it_says(store, digest):
    commit(store, "a")
    (change,) = store.changes_after(0)
    assert replace(change, digest=digest) == change
