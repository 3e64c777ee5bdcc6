"""Uploaded code, against a controller with scripted answers: calls, commands, and their output."""

import hashlib
import io
import json

import pytest

from sluice_client import Client, ClientError, Unreachable
from sluice_client.cli import main
from sluice_client.command_base.watch import NotEnforced, Watch

CODE = b"class Shift:\n    pass\n"
DIGEST = hashlib.sha256(CODE).hexdigest()
REVISION = {"revision": 2, "size": 9, "sha256": DIGEST, "main": "Shift"}
EARLIER = [{"revision": 1, "sha256": "ab" * 32, "size": 7, "main": "Shift"}]
FILTER = {
    **REVISION,
    "keyword": "shift",
    "environment": "native",
    "revisions": EARLIER,
    "created": 0,
    "rollout": {
        "total": 4,
        "nodes": 1,
        "refused": [{"node": "n2", "reason": "no module `x`", "revision": 1}],
        "waiting": ["n3"],
        "away": ["n4"],
    },
}
METRIC = {**REVISION, "name": "HEADS_SEC", "running": True, "uploaded": True, "revisions": EARLIER}
CONTROLLER = {
    **REVISION,
    "name": "busy",
    "state": "failed",
    "reason": "line 3: division by zero",
    "running": True,
    "hosts": ["a1"],
    "metrics": ["HEADS_SEC"],
    "period": 1.0,
    "revisions": [],
}
ON_NODES = [
    {"node": "n1", "state": "running", "reason": "", "revision": 2},
    {"node": "n2", "state": "refused", "reason": "no module `x`", "revision": 0},
]
ON_HOSTS = [
    {
        "host": "a1",
        "state": "running",
        "reason": "",
        "revision": 2,
        "since": "2026-01-01T00:00:00.000Z",
        "last_run": "2026-01-01T00:00:09.000Z",
        "seconds": 0.25,
        "assignments": 3,
    }
]
PLACES = {
    "filter_code": "/filters/x",
    "metric_code": "/registry/metrics/x",
    "controller_code": "/controllers/x",
    "dependency_data": "/filters/dependencies/x",
}
CALLS = {
    "upload": (lambda c: c.upload("x", CODE, wait=2), "PUT", "/data?wait=2", CODE),
    "upload of a class": (lambda c: c.upload("x", CODE, main="Shift & Co"), "PUT", "/data?main=Shift+%26+Co", CODE),
    "download": (lambda c: c.download("x"), "GET", "/data", None),
    "start": (lambda c: c.start("x", wait=3), "POST", "/start?wait=3", None),
    "stop": (lambda c: c.stop("x"), "POST", "/stop", None),
    "stop by force": (lambda c: c.stop("x", force=True), "POST", "/stop?force=true", None),
    "roll back": (lambda c: c.roll_back("x"), "POST", "/rollback", {}),
    "roll back to": (lambda c: c.roll_back("x", 3, wait=1), "POST", "/rollback?wait=1", {"revision": 3}),
    "instances": (lambda c: list(c.instances("x")), "GET", "/instances", None),
}


@pytest.fixture
def client(stub):
    with Client(stub.url, "secret") as made:
        yield made


@pytest.fixture
def run(stub, capsys):
    """A function that runs ``sluice`` and returns its output."""

    def go(*words, status=0):
        assert main(["--url", stub.url, *words]) == status
        return capsys.readouterr()

    return go


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("name", CALLS)
def test_each_call_is_the_same_for_every_kind_of_code(client, stub, place, name):
    call, method, path, body = CALLS[name]
    stub.enqueue(200, {"instances": []})
    call(getattr(client, place))
    (asked,) = stub.requests
    assert (asked.method, asked.path, asked.body) == (method, PLACES[place] + path, body)


@pytest.mark.parametrize("verb", ["upload", "start", "stop", "roll_back"])
def test_a_change_can_be_guarded(client, stub, verb):
    stub.enqueue(200, CONTROLLER)
    getattr(client.controller_code, verb)("busy", *([CODE] if verb == "upload" else []), etag='"7"')
    assert stub.requests[0].headers["If-Match"] == '"7"'


def test_code_goes_with_its_digest_and_comes_back_with_it(client, stub):
    stub.enqueue(200, METRIC).enqueue(200, CODE, X_Content_Sha256=DIGEST)
    client.metric_code.upload("HEADS_SEC", io.BytesIO(CODE))
    assert stub.requests[0].headers["X-Content-Sha256"] == DIGEST
    assert client.metric_code.download("HEADS_SEC") == CODE


def test_code_that_comes_damaged_is_refused(client, stub):
    stub.enqueue(200, CODE + b"!", X_Content_Sha256=DIGEST)
    with pytest.raises(Unreachable, match="came damaged"):
        client.filter_code.download("shift")


@pytest.mark.parametrize("revision", [0, -1])
def test_an_invalid_revision_is_refused_without_a_request(client, stub, revision):
    with pytest.raises(ClientError, match="expected 1 or more"):
        client.filter_code.roll_back("x", revision)
    assert stub.requests == []


def test_controllers_are_listed_shown_and_deleted(client, stub):
    stub.enqueue(200, {"controllers": [CONTROLLER], "next_marker": "busy"}).enqueue(200, {"controllers": []})
    stub.enqueue(200, CONTROLLER).enqueue(200, METRIC).enqueue(204)
    assert client.controllers() == [CONTROLLER]
    assert (client.controller("busy"), client.metric("HEADS_SEC")) == (CONTROLLER, METRIC)
    client.delete_controller("busy")
    assert stub.paths[2:] == ["/controllers/busy", "/registry/metrics/HEADS_SEC", "/controllers/busy"]


COMMANDS = {
    "upload of a filter": (
        ["filter", "upload", "shift", "FILE", "--wait", "9"],
        FILTER,
        "PUT /filters/shift/data?wait=9.0",
    ),
    "rollback of a filter": (["filter", "rollback", "shift"], FILTER, "POST /filters/shift/rollback"),
    "rollout": (["filter", "rollout", "show", "shift"], FILTER, "GET /filters/shift"),
    "upload of a metric": (
        ["metric", "upload", "HEADS_SEC", "FILE", "--main", "Heads"],
        METRIC,
        "PUT /registry/metrics/HEADS_SEC/data?main=Heads",
    ),
    "rollback of a metric": (
        ["metric", "rollback", "HEADS_SEC", "--revision", "1"],
        METRIC,
        "POST /registry/metrics/HEADS_SEC/rollback",
    ),
    "show a metric": (["metric", "show", "HEADS_SEC"], METRIC, "GET /registry/metrics/HEADS_SEC"),
    "show a controller": (["controller", "show", "busy"], CONTROLLER, "GET /controllers/busy"),
    "upload of a controller": (
        ["controller", "upload", "busy", "FILE", "--main", "Busy", "--wait", "2"],
        CONTROLLER,
        "PUT /controllers/busy/data?main=Busy&wait=2.0",
    ),
    "rollback of a controller": (["controller", "rollback", "busy"], CONTROLLER, "POST /controllers/busy/rollback"),
}
FORMS = {"json": json.loads, "table": str, "csv": str, "value": str}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", COMMANDS)
def test_each_command_asks_and_shows_what_came_of_it_in_every_format(run, stub, tmp_path, name, form):
    words, answer, asked = COMMANDS[name]
    (tmp_path / "FILE").write_bytes(CODE)
    stub.enqueue(200, answer)
    said = run(*(str(tmp_path / "FILE") if word == "FILE" else word for word in words), "-f", form)
    assert stub.requests[0].method + " " + stub.requests[0].path == asked
    found = FORMS[form](said.out)
    assert found
    if form == "json":
        assert (found["revision"], found["sha256"]) == (2, DIGEST)
        assert found["revisions"] == answer["revisions"]


def test_a_rollout_says_which_node_goes_on_with_what_and_why(run, stub):
    stub.enqueue(200, FILTER).enqueue(200, FILTER)
    table = run("filter", "rollout", "show", "shift").out
    assert "| rolled_out  | 1/4" in table
    assert "n2 goes on with revision 1: no module `x`" in table
    assert f"1: {'ab' * 6} 7 bytes Shift" in table
    found = json.loads(run("filter", "rollout", "show", "shift", "-f", "json").out)
    assert (found["rolled_out"], found["refused"]) == ("1/4", FILTER["rollout"]["refused"])
    assert (found["waiting"], found["away"]) == (["n3"], ["n4"])


def test_a_filter_shows_how_far_its_code_has_come(run, stub):
    stub.enqueue(200, FILTER).enqueue(200, {**FILTER, "rollout": {**FILTER["rollout"], "refused": []}})
    assert "n2 goes on with revision 1: no module `x`" in run("filter", "show", "shift").out
    assert "waiting: n3" in run("filter", "show", "shift").out


@pytest.mark.parametrize(
    ("words", "text", "path"),
    [
        (["metric", "start"], "metric x is started", "/registry/metrics/x/start?wait=5.0"),
        (["metric", "stop"], "metric x is stopped", "/registry/metrics/x/stop?wait=5.0"),
        (["controller", "start"], "controller x is started", "/controllers/x/start?wait=5.0"),
        (["controller", "stop"], "controller x is stopped", "/controllers/x/stop?wait=5.0"),
    ],
)
def test_several_are_started_and_stopped_and_a_failure_does_not_stop_the_others(run, stub, words, text, path):
    missing = {"error": {"code": 404, "title": "Not Found", "message": "there is no such thing", "problems": []}}
    stub.enqueue(404, missing).enqueue(200, CONTROLLER)
    said = run(*words, "none", "x", "--wait", "5", status=1)
    assert said.out == text + "\n"
    assert said.err.startswith("none: there is no such thing (HTTP 404)")
    assert stub.paths[1] == path


def test_a_metric_is_stopped_under_policies_on_demand_only(run, stub):
    stub.enqueue(200, METRIC)
    assert "is stopped" in run("metric", "stop", "HEADS_SEC", "--force").out
    assert stub.paths == ["/registry/metrics/HEADS_SEC/stop?force=true"]


@pytest.mark.parametrize(
    ("words", "answer", "row"),
    [
        (["metric", "instance", "list", "HEADS_SEC"], ON_NODES, "n2,refused,0,no module `x`"),
        (["controller", "instance", "list", "busy"], ON_HOSTS, "a1,running,2,3,2026-01-01T00:00:09.000Z,"),
    ],
)
def test_instances_are_listed(run, stub, words, answer, row):
    stub.enqueue(200, {"instances": answer})
    assert row in run(*words, "-f", "csv", "--quote", "none").out


def test_controllers_are_listed_with_their_hosts_and_what_is_wrong(run, stub):
    stub.enqueue(200, {"controllers": [CONTROLLER]}).enqueue(204)
    table = run("controller", "list").out
    assert "line 3: division by zero" in table
    assert "a1" in table
    assert run("controller", "delete", "busy").out == "controller busy is deleted\n"


@pytest.mark.parametrize(
    ("words", "path"),
    [
        (["filter", "download"], "/filters/x/data"),
        (["metric", "download"], "/registry/metrics/x/data"),
        (["controller", "download"], "/controllers/x/data"),
        (["dependency", "download"], "/filters/dependencies/x/data"),
    ],
)
def test_code_is_written_into_a_file(run, stub, tmp_path, words, path):
    stub.enqueue(200, CODE, X_Content_Sha256=DIGEST)
    assert run(*words, "x", str(tmp_path / "copy")).out == f"{len(CODE)} bytes are in {tmp_path / 'copy'}\n"
    assert (tmp_path / "copy").read_bytes() == CODE
    assert stub.paths == [path]


def test_a_refusal_of_code_leaves_no_file(run, stub, tmp_path):
    missing = {"error": {"code": 404, "title": "Not Found", "message": "it has no code yet", "problems": []}}
    stub.enqueue(404, missing)
    assert "it has no code yet (HTTP 404)" in run("filter", "download", "x", str(tmp_path / "copy"), status=1).err
    assert not (tmp_path / "copy").exists()


def test_a_node_shows_the_code_that_it_can_run_and_how_its_isolated_environments_fare(run, stub):
    node = {"node": "n1", "state": "ok", "refused": [], "code": {"shift": 2, "metric/HEADS_SEC": 1}}
    node["sandbox"] = {"wasm": "ok", "storlet": "the docker engine does not answer"}
    stub.enqueue(200, node).enqueue(200, {"nodes": [node]}).enqueue(200, {"nodes": []})
    table = run("node", "show", "n1").out
    assert "shift: revision 2" in table
    assert "storlet: the docker engine does not answer" in table
    (row,) = json.loads(run("node", "list", "--long", "-f", "json").out)
    assert (row["Code"], row["Sandbox"]) == (node["code"], node["sandbox"])
    run("node", "list", "--refusing", "--state", "ok")
    assert stub.paths[2] == "/nodes?state=ok&refusing=true"


class Story:
    """A roll-out that progresses from answer to answer."""

    def __init__(self, stub, *rollouts):
        self.said, self.pauses = [], []
        for one in rollouts:
            stub.enqueue(200, {**FILTER, "rollout": {"refused": [], "waiting": [], "away": [], **one}})

    def watch(self, timeout=None):
        return Watch(self.said.append, timeout, clock=lambda: sum(self.pauses), pause=self.pauses.append)


def test_watching_a_rollout_ends_when_every_node_has_it(client, stub):
    story = Story(stub, {"total": 2, "nodes": 0}, {"total": 2, "nodes": 1}, {"total": 2, "nodes": 2})
    found = story.watch().until_rolled_out(client, "shift")
    assert found["rollout"]["nodes"] == 2
    assert story.said == [f"revision 2 on {number}/2 nodes" for number in range(3)]


def test_a_refused_revision_ends_the_watch_with_the_reason(client, stub):
    refused = [{"node": "n2", "reason": "no module\x1b[31m", "revision": 1}]
    story = Story(stub, {"total": 2, "nodes": 1, "refused": refused})
    with pytest.raises(NotEnforced) as caught:
        story.watch().until_rolled_out(client, "shift")
    reason = "revision 2 of filter `shift` is refused: n2 goes on with revision 1: no module [31m"
    assert str(caught.value) == reason


def test_the_end_of_the_time_names_the_nodes_that_have_not_said_anything(client, stub):
    story = Story(stub, *[{"total": 3, "nodes": 1, "waiting": ["n2"], "away": ["n3"]}] * 9)
    with pytest.raises(NotEnforced, match=r"filter `shift` is not everywhere after 2 s: waiting: n2; away: n3$"):
        story.watch(2.0).until_rolled_out(client, "shift")


def test_a_filter_without_code_is_nowhere_and_will_not_be(client, stub):
    stub.enqueue(200, {**FILTER, "sha256": ""})
    with pytest.raises(NotEnforced, match="has no code yet"):
        Watch(print).until_rolled_out(client, "shift")


def test_the_command_watches_a_rollout(run, stub):
    Story(stub, {"total": 1, "nodes": 1})
    said = run("filter", "rollout", "show", "shift", "--watch", "-f", "value", "-c", "rolled_out")
    assert (said.out, said.err) == ("1/1\n", "revision 2 on 1/1 nodes\n")
    assert "without `--watch`" in run("filter", "rollout", "show", "shift", "--timeout", "1", status=1).err
