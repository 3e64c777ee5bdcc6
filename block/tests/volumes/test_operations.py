"""Volumes in a real Redis: one claim at a time, and no write that replaces another process' write."""

from dataclasses import replace

import pytest

from sluice_core.store.operation import Operation, nothing
from sluice_volumes import operations
from sluice_volumes.messages import DONE, EXTEND, StackStep, Tier, VolumeOperation, VolumeRecord

ORDER = VolumeOperation("o1", EXTEND, "p1", "v1", {"size": 2}, created=100.0)


@pytest.fixture
def run(store):
    return lambda operation, *given: store.run(operation(store.keys, *given))


def claim(store, found, now):
    claimed, write = operations.claim(store.keys, found, now)
    return claimed if store.run(write) else None


def test_an_operation_is_claimed_by_one_until_it_is_released(run, store):
    assert run(operations.create_operation, ORDER) == ""
    assert run(operations.create_operation, replace(ORDER, by="other")) == "o1"
    claimed = claim(store, ORDER, 100.0)
    assert claim(store, ORDER, 100.5) is None
    assert not operations.is_free(claimed, 100.5)
    assert run(operations.release, claimed, replace(claimed, step="asked"))
    found = run(operations.JOBS.read, "o1")
    assert (found.step, found.claimed) == ("asked", 0.0)
    assert operations.is_free(found, 100.6)


def test_there_is_one_operation_on_a_volume_at_a_time(run, store):
    run(operations.create_operation, ORDER)
    assert run(operations.create_operation, replace(ORDER, id="o2")) == "o1"
    assert run(operations.create_operation, replace(ORDER, id="o3", volume="v2")) == ""
    assert run(operations.create_operation, replace(ORDER, id="o4", volume="")) == ""
    assert run(operations.JOBS.replace, ORDER, replace(ORDER, state=DONE))
    assert run(operations.create_operation, replace(ORDER, id="o2")) == ""


def test_who_died_with_a_claim_loses_it_and_writes_nothing_any_more(run, store):
    run(operations.create_operation, ORDER)
    late = claim(store, ORDER, 100.0)
    assert operations.is_free(late, 100.0 + operations.LEASE)
    second = claim(store, late, 100.0 + operations.LEASE)
    assert not run(operations.release, late, replace(late, state=DONE))
    assert run(operations.release, second, second)


def test_the_oldest_that_ended_are_forgotten_and_none_that_is_under_way(run):
    for number in range(4):
        run(operations.create_operation, replace(ORDER, id=f"e{number}", state=DONE, ended=float(number)))
    run(operations.create_operation, ORDER)
    run(operations.forget, run(operations.JOBS.read_all), 2)
    assert set(run(operations.JOBS.read_all)) == {"o1", "e2", "e3"}


def test_a_record_is_made_once_and_replaced_as_it_was_read(run):
    record = VolumeRecord("v1", "p1", "AUTH_p1", stack=(StackStep("xor", {"key": 7}),), fixed=5.0)
    assert run(operations.RECORDS.create, record)
    assert not run(operations.RECORDS.create, replace(record, stack=()))
    assert run(operations.RECORDS.read, "v1") == record
    assert not run(operations.RECORDS.replace, replace(record, name="other"), replace(record, name="new"))
    assert run(operations.RECORDS.replace, record, replace(record, name="new"))
    assert run(operations.RECORDS.read_all)["v1"].name == "new"


def test_a_tier_is_made_once(run):
    assert run(operations.TIERS.create, Tier("gold", "t1"))
    assert not run(operations.TIERS.create, Tier("gold", "t2"))
    assert run(operations.TIERS.read_all)["gold"].type == "t1"


def test_a_record_of_before_there_were_sizes_is_replaced(run, store):
    stored = (
        b'{"account":"AUTH_p1","attachment":"","by":"","created":1.0,"fixed":2.0,"header":2068480,"id":"v1","name":"",'
        b'"node":"","pool":"","project":"p1","secret":"k1","stack":[{"keyword":"luks","params":{}}],"tier":"","v":1}'
    )
    store.run(Operation((("HSET", store.keys.volumes, "v1", stored),), nothing))
    old = run(operations.RECORDS.read, "v1")
    assert (old.size, old.header_gib, old.header) == (0, 0, 2068480)
    assert run(operations.RECORDS.replace, old, replace(old, node="n1"))
    assert run(operations.RECORDS.read, "v1").node == "n1"
