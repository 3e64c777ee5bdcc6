"""A rewriter's processing of a unit: listings add units, containers are processed page by page."""

import json

import pytest

from sluice_core.errors import PeerError
from sluice_middleware.swift.proxy_api import Request, Response
from sluice_middleware.wsgi.internal_client import SwiftClient
from sluice_rewriter import unit_worker
from sluice_rewriter.object_rewriter import FAILED, REWRITTEN, STOPPED, UNCHANGED, Outcome
from sluice_rewriter.unit_worker import Claim, UnitWorker
from sluice_rewrites import accounts, operations
from sluice_rewrites.messages import PAUSED, PLAIN, RUNNING, RewriteJob


class Listings:
    """A Swift that has only containers with names of objects."""

    def __init__(self, **containers):
        self.containers = containers
        self.copies = {}
        self.synced, self.deleted = set(), set()
        self.away = False
        self.asked = []

    def __call__(self, env, start_response):
        request = Request(dict(env))
        parts = request.path_info.encode("latin-1").decode().split("/", 3)[2:]
        self.asked.append((request.method, *parts, request.params.get("marker", "")))
        return self.answer(request, parts)(env, start_response)

    def answer(self, request, parts):
        if self.away:
            return Response(request=request, status=503)
        if parts[0] in self.deleted:
            return Response(request=request, status=410)
        containers = self.copies if parts[0].startswith(".") else self.containers
        if len(parts) == 1:
            return self.page(request, sorted(containers))
        names = containers.get(parts[1])
        if names is None:
            return Response(request=request, status=404)
        if request.method == "HEAD":
            more = {"X-Container-Sync-To": "//a/b"} if parts[1] in self.synced else {}
            counts = {"X-Container-Object-Count": len(names), "X-Container-Bytes-Used": 10 * len(names)}
            return Response(request=request, status=204, headers={**counts, **more})
        return self.page(request, names)

    def page(self, request, names):
        given = request.params
        marker, prefix = given.get("marker", ""), given.get("prefix", "")
        rows = [{"name": name, "bytes": 10} for name in names if name > marker and name.startswith(prefix)]
        return Response(request=request, body=json.dumps(rows[: int(given["limit"])]), content_type="application/json")


@pytest.fixture
def scene(store):
    return Scene(store)


class Scene:
    """A job, a worker, and the objects that it rewrote."""

    def __init__(self, store):
        self.store = store
        self.swift = Listings()
        self.rewritten = []
        self.outcome = lambda name: Outcome(REWRITTEN, size=10)
        self.worker = UnitWorker(store, SwiftClient(self.swift), self.rewrite, 2)

    def rewrite(self, target, goal):
        self.rewritten.append("/".join(target))
        return self.outcome(target[2])

    def order(self, account="AUTH_a", container="", prefix=""):
        self.job = RewriteJob("j", account, container, prefix, PLAIN, RUNNING, 1, "me")
        self.store.run(operations.create_job(self.store.keys, self.job))

    def work(self, units=100):
        """Process this many units, one after the other."""
        for _ in range(units):
            unit = self.store.run(operations.claim_unit(self.store.keys, "j"))
            if unit is None:
                return
            claim = Claim(self.store, unit, lambda: False)
            try:
                self.worker.work(self.job, claim)
            finally:
                claim.release()

    def progress(self):
        return self.store.run(operations.read_progress(self.store.keys, "j"))


def test_an_account_is_listed_and_all_of_its_objects_are_rewritten(scene, monkeypatch):
    monkeypatch.setattr(unit_worker, "_LISTED", 2)
    scene.swift.containers = {"a": ["1", "2"], "b": [], "c": ["3"]}
    scene.order()
    scene.work()
    assert sorted(scene.rewritten) == ["AUTH_a/a/1", "AUTH_a/a/2", "AUTH_a/c/3"]
    found = scene.progress()
    assert (found.containers, found.containers_done, found.objects, found.bytes, found.listings) == (3, 3, 3, 30, 0)
    assert (found.counts.seen, found.counts.rewritten, found.counts.seen_bytes) == (3, 3, 30)
    assert found.ended


def test_a_job_for_the_cluster_begins_with_the_known_accounts(scene):
    scene.store.run(accounts.add_accounts(scene.store.keys, ["AUTH_a", "AUTH_b"]))
    scene.swift.containers = {"c": ["o"]}
    scene.order("")
    scene.work()
    assert sorted(scene.rewritten) == ["AUTH_a/c/o", "AUTH_b/c/o"]
    assert (scene.progress().containers, scene.progress().listings) == (2, 0)


def test_an_account_that_was_deleted_has_nothing(scene):
    scene.store.run(accounts.add_accounts(scene.store.keys, ["AUTH_a", "AUTH_gone"]))
    scene.swift.containers, scene.swift.deleted = {"c": ["o"]}, {"AUTH_gone"}
    scene.order("")
    scene.work()
    assert scene.rewritten == ["AUTH_a/c/o"]
    assert scene.progress().ended


@pytest.mark.parametrize("account", ["", "AUTH_a"])
def test_copies_of_contracted_objects_belong_to_their_account(scene, account):
    scene.store.run(accounts.add_accounts(scene.store.keys, ["AUTH_a"]))
    scene.swift.containers = {"c": ["o"]}
    scene.swift.copies = {"cold": ["1", "2"]}
    scene.order(account)
    scene.work()
    assert sorted(scene.rewritten) == [".sluice_copies_AUTH_a/cold/1", ".sluice_copies_AUTH_a/cold/2", "AUTH_a/c/o"]
    assert (scene.progress().objects, scene.progress().listings) == (3, 0)
    assert scene.progress().ended


def test_a_container_has_its_versions_and_parts_with_it_and_a_prefix_holds_for_all(scene):
    scene.swift.containers = {
        "c": ["a1", "b"],
        "\0versions\0c": ["\0a1\x00009", "\0b\x00009"],
        "c+segments": ["a1/x/1", "b/x/1"],
        "d": ["a1"],
    }
    scene.order(container="c", prefix="a")
    scene.work()
    assert scene.rewritten == ["AUTH_a/c/a1", "AUTH_a/\0versions\0c/\0a1\x00009", "AUTH_a/c+segments/a1/x/1"]


def test_a_unit_goes_on_behind_the_last_page_that_was_reported(scene, monkeypatch):
    monkeypatch.setattr(unit_worker, "_PAGE", 2)
    scene.swift.containers = {"c": ["1", "2", "3", "4", "5"]}
    scene.order(container="c")
    scene.work(1)

    def stop_at_three(name):
        if name == "3":
            scene.store.run(operations.change_state(scene.store.keys, "j", PAUSED))
        return Outcome(UNCHANGED)

    scene.outcome = stop_at_three
    scene.work()
    assert scene.rewritten == ["AUTH_a/c/1", "AUTH_a/c/2", "AUTH_a/c/3", "AUTH_a/c/4"]
    scene.store.run(operations.change_state(scene.store.keys, "j", RUNNING))
    scene.work()
    assert scene.rewritten[4:] == ["AUTH_a/c/5"]
    assert scene.progress().counts.seen == 5


def test_what_was_not_begun_is_not_passed_over(scene, monkeypatch):
    monkeypatch.setattr(unit_worker, "_PAGE", 3)
    scene.swift.containers = {"c": ["1", "2", "3", "4", "5"]}
    scene.order(container="c")
    scene.work(1)
    stopped = ["3"]

    def stop(name):
        if name in stopped:
            stopped.remove(name)
            return Outcome(STOPPED)
        return Outcome(UNCHANGED)

    scene.outcome = stop
    scene.work()
    assert stopped == []
    assert scene.progress().ended
    assert scene.progress().counts.seen == 5


def test_the_manifest_of_a_large_object_counts_what_it_has_itself(scene):
    """Its row has the size of all parts together, which the container does not count."""
    scene.swift.containers = {"c": ["manifest", "unread"]}
    scene.outcome = lambda name: Outcome(UNCHANGED, size=3) if name == "manifest" else Outcome(FAILED, "HEAD: 503")
    scene.order(container="c")
    scene.work()
    assert scene.progress().counts.seen_bytes == 13


def test_what_is_uploaded_meanwhile_was_found_too(scene):
    scene.swift.containers = {"c": ["1"]}
    scene.order()
    scene.work(1)
    scene.swift.containers = {"c": ["1", "2", "3"]}
    scene.work()
    found = scene.progress()
    assert (found.objects, found.bytes) == (found.counts.seen, found.counts.seen_bytes) == (3, 30)


def test_a_page_whose_report_got_no_answer_is_not_counted_twice(scene):
    """Redis has counted it; the rewriter releases the unit with the last marker that it knows."""
    scene.swift.containers = {"c": ["1", "2"]}
    scene.order(container="c")
    scene.work(1)
    real, cut = scene.store.run, []

    def run(operation):
        answer = real(operation)
        if not cut and scene.rewritten:
            cut.append(operation)
            raise PeerError("the connection is cut")
        return answer

    scene.store.run = run
    with pytest.raises(PeerError):
        scene.work()
    scene.store.run = real
    scene.work()
    assert scene.progress().ended
    assert scene.progress().counts.seen == 2


def test_what_fails_is_counted_by_its_reason_and_named(scene):
    scene.swift.containers = {"c": ["1", "2"]}
    scene.outcome = lambda name: (
        Outcome(FAILED, "damaged", detail=f"frame {name}") if name == "2" else Outcome(UNCHANGED)
    )
    scene.order(container="c")
    scene.work()
    found = scene.progress()
    assert dict(found.counts.failed) == {"damaged": 1}
    assert found.examples == (("AUTH_a/c/2", "damaged: frame 2"),)
    assert found.counts.unchanged == 1


def test_a_container_that_is_synchronized_is_skipped(scene):
    scene.swift.containers, scene.swift.synced = {"c": ["1", "2"]}, {"c"}
    scene.order(container="c")
    scene.work()
    assert scene.rewritten == []
    assert dict(scene.progress().counts.skipped) == {"container is synchronized to another": 2}
    assert scene.progress().counts.seen_bytes == 20
    assert scene.progress().ended


def test_when_swift_is_away_the_unit_is_given_back(scene):
    scene.swift.away = True
    scene.order()
    with pytest.raises(PeerError, match="503"):
        scene.work()
    scene.swift.away = False
    scene.swift.containers = {"c": ["o"]}
    scene.work()
    assert scene.rewritten == ["AUTH_a/c/o"]
