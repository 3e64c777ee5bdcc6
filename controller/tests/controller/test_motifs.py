"""``/motifs`` and ``/spaces``, with a daemon over a storage in memory."""

import time
from dataclasses import replace

import pytest

from sluice_core.messages.elasticity import WHOLE_CLUSTER
from sluice_motif_control.messages import CANCELLED, DONE, SpaceStatus
from sluice_motif_control.spaces import MOTIF_METRICS, write_spaces
from sluice_motifs.runtime import Runtime
from sluice_motifs.runtime_calls import RuntimeCalls, described_templates
from sluice_motifs.storage.leases import LocalLeases
from sluice_motifs.templates.registry import load_templates
from sluice_motifs.testing.memory_shim import MemoryShim
from sluice_motifs_swift.cluster import call_server, operation_worker
from sluice_motifs_swift.cluster.call_server import CallServer

SOURCE = "AUTH_a/c/source"
ONE = "AUTH_a/c/dir/one"


class Storage:
    def __init__(self):
        self.shim = MemoryShim(self.read)
        self.runtime = Runtime(self.shim, LocalLeases(), load_templates())
        self.suspended = ""
        self.calls = RuntimeCalls(self.runtime, self.shim, lambda: self.suspended)
        for name in (SOURCE, ONE, "AUTH_a/c/two", "AUTH_b/c/three"):
            self.shim.put(name, b"x" * 100)
        self.runtime.restart()

    def read(self, name, chain=()):
        opened = self.runtime.notify_open(name, chain)
        try:
            yield from self.shim.own_bytes(opened.view) if opened.expansion is None else opened.read()
        finally:
            self.runtime.notify_close(opened)


@pytest.fixture
def storage(backend, monkeypatch):
    monkeypatch.setattr(call_server, "_WAIT", 0.1)  # the longest time of a stop
    monkeypatch.setattr(operation_worker, "_POLL", 0.1)
    storage = Storage()
    server = CallServer(backend.store, storage.calls, "n1", described_templates(load_templates()), time.time)
    server.start()
    yield storage
    server.stop()


def attach(api, name, template="duplicate_of", source=SOURCE, status=200, **more):
    body = {"template": template, "params": {"source": source, **more}}
    answer = api.put(f"/motifs/{name}", body, format="json")
    assert answer.status_code == status, answer.content
    return answer.json()


def act(api, name, status=200, **body):
    answer = api.post(f"/motifs/{name}", body, format="json")
    assert answer.status_code == status, answer.content
    return answer.json()


def test_a_motif_is_attached_used_and_detached(api, storage):
    shown = attach(api, ONE)
    assert (shown["item"], shown["size"], shown["contracted"]) == (ONE, 100, False)
    assert shown["motifs"] == [{"template": "duplicate_of", "params": {"source": SOURCE}, "attached_by": ""}]
    why = api.get(f"/motifs/{ONE}?why=true").json()
    assert (why["contractible"], why["reasons"], why["space"]) == (True, [], None)
    assert act(api, ONE, action="contract", verify="trust")["outcome"] == "contracted"
    assert api.get(f"/motifs/{ONE}").json()["contracted"]
    assert not act(api, ONE, action="expand")["contracted"]
    left = api.delete(f"/motifs/{ONE}?template=duplicate_of")
    assert (left.status_code, left.json()["motifs"]) == (200, [])


def test_nothing_is_contracted_while_a_node_does_not_know_motifs(api, storage):
    attach(api, ONE)
    storage.suspended = "node `n2` does not know motifs"
    answer = act(api, ONE, 503, action="contract")
    assert answer["error"]["message"] == "contraction is suspended: node `n2` does not know motifs"


def test_objects_with_motifs_are_listed_by_account_and_container_page_by_page(api, storage):
    for name in (ONE, "AUTH_a/c/two", "AUTH_b/c/three"):
        attach(api, name)
    page = api.get("/motifs?limit=2").json()
    assert ([one["item"] for one in page["objects"]], page["next_marker"]) == ([ONE, "AUTH_a/c/two"], "AUTH_a/c/two")
    rest = api.get("/motifs?limit=2&marker=AUTH_a/c/two").json()
    assert ([one["item"] for one in rest["objects"]], rest["next_marker"]) == (["AUTH_b/c/three"], None)
    assert len(api.get("/motifs?account=AUTH_a&container=c").json()["objects"]) == 2
    assert api.get("/motifs?container=c").status_code == 400


@pytest.mark.parametrize(
    ("body", "status", "reason"),
    [
        ({"template": "duplicate"}, 404, "unknown template `duplicate`, did you mean `duplicate_of`"),
        ({"template": "duplicate_of", "params": {"sauce": "x"}}, 400, "no parameter `sauce`, did you mean `source`"),
        ({"template": "duplicate_of"}, 400, "needs parameter `source`"),
        ({"template": "duplicate_of", "params": {"source": SOURCE, "versions": "7"}}, 400, "takes no `versions`"),
        ({"template": "compressed", "params": {"source": SOURCE, "versions": "7"}}, 400, "expected the ETag of each"),
        ({"template": "duplicate_of", "params": {"source": "AUTH_a/c/none"}}, 404, "source `AUTH_a/c/none` does not"),
        ({"template": "compressed", "params": {"source": SOURCE, "level": "fast"}}, 400, "expected a whole number"),
        ({"template": "compressed", "params": {"source": SOURCE, "engine": "gzp"}}, 400, "did you mean `gzip`"),
        ({"templat": "concat"}, 400, "did you mean `template`"),
        ({}, 400, "`template` is missing"),
    ],
)
def test_a_motif_that_cannot_be_is_refused(api, storage, body, status, reason):
    answer = api.put(f"/motifs/{ONE}", body, format="json")
    assert answer.status_code == status
    assert reason in answer.json()["error"]["message"]


def test_what_is_not_there_is_not_found_and_other_actions_are_refused(api, storage):
    assert api.get("/motifs/AUTH_a/c/none").status_code == 404
    assert "expected expand, contract" in act(api, ONE, 400, action="shrink")["error"]["message"]
    assert "is a parameter of contractions" in act(api, ONE, 400, action="expand", verify="head")["error"]["message"]
    assert "has no motif" in api.delete(f"/motifs/{ONE}").json()["error"]["message"]


def test_without_a_daemon_the_answer_says_so(api):
    for answer in (api.get("/motifs"), api.put(f"/motifs/{ONE}", {"template": "concat"}, format="json")):
        assert answer.status_code == 503
        assert "no daemon `sluice-motifs` runs" in answer.json()["error"]["message"]
    assert api.get("/motifs/templates").json() == {"templates": [], "daemons": 0}


def test_templates_are_listed_with_their_parameters(api, storage):
    found = api.get("/motifs/templates").json()
    assert found["daemons"] == 1
    by_keyword = {one["keyword"]: one for one in found["templates"]}
    assert by_keyword["duplicate_of"]["relation"] == "preserving"
    assert [one["name"] for one in by_keyword["compressed"]["parameters"]] == ["source", "engine", "level"]


def test_everything_is_expanded_in_the_background(api, storage):
    for name in (ONE, "AUTH_a/c/two", "AUTH_b/c/three"):
        attach(api, name)
        act(api, name, action="contract", verify="trust")
    ordered = api.post("/motifs/operations", {"account": "AUTH_a"}, format="json")
    assert ordered.status_code == 202
    ended = api.get(f"{ordered.headers['Location']}?wait=20").json()
    # The source was contracted to the same copy.
    assert (ended["state"], ended["expanded"], ended["failed"], ended["remaining"]) == (DONE, 3, 0, 0)
    assert ended["account"] == "AUTH_a"
    assert api.get("/motifs/AUTH_b/c/three").json()["contracted"]
    assert [one["id"] for one in api.get("/motifs/operations?state=done").json()["operations"]] == [ended["id"]]
    assert api.post(f"{ordered.headers['Location']}/cancel").status_code == 409


def test_an_operation_is_cancelled_before_a_daemon_takes_it(api, backend):
    from sluice_motif_control.calls import announce
    from sluice_motif_control.messages import MotifDaemon

    backend.store.run(announce(backend.store.keys, MotifDaemon("n1/1", "n1")))
    where = api.post("/motifs/operations", {}, format="json").headers["Location"]
    assert api.post(f"{where}/cancel").json()["state"] == CANCELLED
    assert api.post(f"{where}/cancel").status_code == 409
    assert api.get("/motifs/operations/none").status_code == 404
    assert api.post("/motifs/operations", {"container": "c"}, format="json").status_code == 400


def test_spaces_are_shown_as_they_were_reported(api, backend):
    statuses = [
        SpaceStatus("AUTH_a/c", "container", 1000, 800, 200, 8, 2, "lru", 60.0, "head", 3, 1, parts={}),
        SpaceStatus(WHOLE_CLUSTER, "cluster", 10, 20, 0, state="thrashing", reason="too many came back",
                    policy="lru", verify="head", parts={"AUTH_a": (5, 4)}),
    ]  # fmt: skip
    backend.store.run(write_spaces(backend.store.keys, statuses))
    found = api.get("/spaces").json()["spaces"]
    assert [(one["name"], one["used"], one["hit_rate"]) for one in found] == [
        ("AUTH_a/c", 800, 0.75), ("CLUSTER", 20, None)
    ]  # fmt: skip
    cluster = api.get("/spaces/CLUSTER").json()
    assert (cluster["state"], cluster["parts"]) == ("thrashing", [{"path": "AUTH_a", "target": 5, "used": 4}])
    assert api.get("/spaces/AUTH_a/d").status_code == 404


@pytest.fixture
def acme(backend):
    """Keystone has a project `acme`."""
    native = replace(backend.native, tenants={"acme": "AUTH_1"}, account_prefix="AUTH_")
    object.__setattr__(backend, "native", native)


def test_a_project_s_name_stands_for_its_account_in_a_space(api, backend, acme):
    places = {"AUTH_1/m": "container", "AUTH_1": "tenant", WHOLE_CLUSTER: "cluster"}
    spaces = [SpaceStatus(name, level, 1000, 500, 0, policy="lru", verify="head") for name, level in places.items()]
    backend.store.run(write_spaces(backend.store.keys, spaces))
    names = {word: api.get(f"/spaces/{word}").json()["name"] for word in ("acme/m", "acme", "AUTH_1/m", "CLUSTER")}
    assert names == {"acme/m": "AUTH_1/m", "acme": "AUTH_1", "AUTH_1/m": "AUTH_1/m", "CLUSTER": "CLUSTER"}
    assert [one["name"] for one in api.get("/spaces?prefix=acme/").json()["spaces"]] == ["AUTH_1/m"]
    refused = api.get("/spaces/acne/m")
    assert refused.status_code == 400
    assert "`acne`, did you mean `acme`" in refused.json()["error"]["message"]


def test_what_keeps_a_space_is_shown_by_the_project_s_name(api, create, storage, acme):
    keeps = create("FOR CONTAINER acme/m DO SET elasticity WITH target_size=10GB")
    for path in ("acme/m", "acme/m/an/object", "AUTH_1/m"):
        (kind,) = api.get(f"/effective?target={path}").json()["kinds"]
        assert (kind["kind"], kind["decided_by"]) == ("motif", [keeps["id"]])
        assert [one["keyword"] for one in kind["pipeline"]] == ["elasticity"]
    refused = api.get("/effective?target=acne/m")
    assert refused.status_code == 400
    assert "`acne`, did you mean `acme`" in refused.json()["error"]["message"]


def test_metrics_of_spaces_are_listed_while_a_daemon_runs(api, storage):
    listed = {one["name"]: one for one in api.get("/registry/metrics").json()["metrics"]}
    for info in MOTIF_METRICS:
        assert (listed[info.name]["unit"], listed[info.name]["registered"]) == (info.unit, False)
        assert api.get(f"/registry/metrics/{info.name}").json() == listed[info.name]


def test_without_a_daemon_there_are_no_metrics_of_spaces(api):
    assert "FREE_SPACE" not in {one["name"] for one in api.get("/registry/metrics").json()["metrics"]}
    assert api.get("/registry/metrics/FREE_SPACE").status_code == 404
