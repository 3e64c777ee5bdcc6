"""Jobs that earlier code left unfinished are finished by today's code.

The keys are those that the code of commit ``6a3c314a`` wrote, at the moment when its processes were killed.
"""

from dataclasses import replace

import pytest

from sluice_core.store.store import Store
from sluice_motif_control import operations as expansions
from sluice_motif_control.messages import DONE as EXPANDED
from sluice_rewrites import operations as rewrites
from sluice_rewrites.messages import DONE, RUNNING, RewriteCounts
from sluice_volumes import operations as volumes
from sluice_volumes.messages import DONE as FOUND_DONE

PREFIX = "jobs"
HASHES = {
    "motif_operation_owners": {"m1": "dead/1"},
    "motif_operations": {
        "m1": '{"account":"AUTH_a","by":"admin","bytes":0,"container":"","created":5.0,"daemon":"dead/1","ended":0.0,'
        '"examples":[],"expanded":1,"failed":0,"id":"m1","remaining":2,"started":6.0,"state":"running","v":1}'
    },
    "rewrite:j1:markers": {"AUTH_a/c1": '{"marker":"o1","token":2}'},
    "rewrite:j1:progress": {
        "started": "1796022675.640",
        "listings": "0",
        "token": "2",
        "containers": "2",
        "objects": "4",
        "bytes": "37",
        "seen": "1",
        "rewritten": "1",
        "rewritten_bytes": "10",
        "seen_bytes": "10",
    },
    "rewrites": {
        "j1": '{"account":"AUTH_a","by":"admin","container":"","created":1000,"epoch":0,"goal":"plain","history":"",'
        '"id":"j1","max_bw":0.0,"max_objects":0.0,"prefix":"","state":"running","v":1}'
    },
    "volume_operations": {
        "v1": '{"by":"me","claimed":100.0,"created":5.0,"data":{"size":3},"ended":0.0,"id":"v1","project":"p",'
        '"reason":"","state":"under_way","step":"","v":1,"volume":"vol","what":"extend"}'
    },
}
#: Leases that expired when their owners were killed.
LEASES = {"motif_operation_leases": {"m1": 1700000000.655251}, "rewrite:j1:leases": {"AUTH_a/c1": 1700000000.641726}}


@pytest.fixture
def run(redis_url):
    store = Store(redis_url, PREFIX)
    for key, fields in HASHES.items():
        store.client.hset(f"{PREFIX}:{key}", mapping=fields)
    for key, leases in LEASES.items():
        store.client.zadd(f"{PREFIX}:{key}", leases)
    store.client.rpush(f"{PREFIX}:rewrite:j1:units", "AUTH_a/c2")
    yield lambda operation, *given, **named: store.run(operation(store.keys, *given, **named))
    store.client.delete(*store.client.keys(f"{PREFIX}:*"))
    store.close()


def test_a_rewrite_goes_on_where_a_rewriter_died(run):
    for path, marker, counts in (("AUTH_a/c1", "o1", RewriteCounts(2, 2, 20, 20)), ("AUTH_a/c2", "", RewriteCounts(1))):
        unit = run(rewrites.claim_unit, "j1")
        assert (unit.path, unit.marker) == (path, marker)
        assert unit.token > 2
        dead = replace(unit, token=2)
        assert run(rewrites.report_unit, dead, "o9") is None
        assert run(rewrites.report_unit, unit, "", counts, more={"containers_done": 1}, lease=0) == RUNNING
    assert run(rewrites.claim_unit, "j1") is None
    assert run(rewrites.JOBS.read, "j1").state == DONE
    progress = run(rewrites.read_progress, "j1")
    assert (progress.counts.seen, progress.counts.rewritten_bytes, progress.containers_done) == (4, 30, 2)
    assert progress.ended > 0


def test_an_expansion_begins_anew_with_another_daemon(run):
    claimed = run(expansions.claim_operation, "new/1")
    assert (claimed.id, claimed.account, claimed.started) == ("m1", "AUTH_a", 6.0)
    assert not run(expansions.report_operation, claimed, "dead/1")
    ended = replace(claimed, state=EXPANDED, ended=9.0)
    assert run(expansions.report_operation, ended, "new/1", ended=True)
    assert run(expansions.claim_operation, "new/1") is None
    assert run(expansions.JOBS.read, "m1") == ended


def test_an_operation_on_a_volume_is_claimed_when_its_owner_died(run):
    operation = run(volumes.JOBS.read, "v1")
    assert not volumes.is_free(operation, 100.0 + volumes.LEASE - 1)
    assert volumes.is_free(operation, 100.0 + volumes.LEASE)
    claimed = replace(operation, claimed=500.0)
    assert run(volumes.JOBS.replace, operation, claimed)
    assert not run(volumes.release, operation, replace(operation, state=FOUND_DONE))
    assert run(volumes.release, claimed, replace(claimed, state=FOUND_DONE, ended=501.0))
    assert run(volumes.JOBS.read, "v1") == replace(operation, state=FOUND_DONE, ended=501.0, claimed=0.0)
