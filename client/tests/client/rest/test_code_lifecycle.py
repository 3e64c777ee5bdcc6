"""Native filters, metrics and controllers from upload to roll back, against a real API that tries them in a child
process.

The commands are those of docs/cli/index.md.
"""

import json

import pytest

FILTER = """
from sluice_core.describe import ActionInfo
from sluice_filters.api import Filter, Stream


class Mark(Stream):
    def feed(self, data):
        return data


class Marked(Filter):
    info = ActionInfo("marked", "filter", "HELP", stage=430)

    def encoder(self, hint):
        return Mark()
"""
METRIC = """
from sluice_core.describe import MetricInfo
from sluice_metrics.api import Metric


class Heads(Metric):
    info = MetricInfo("HEADS_SEC", "per_second", "HEAD requests per second")

    def admitted(self, method):
        return 1 if method == "HEAD" else 0
"""
CONTROLLER = """
from sluice_core.control import Assign, Controller, ControllerInfo


class Busy(Controller):
    info = ControllerInfo("busy", metrics=("PUTS_SEC",), help="HELP")

    def compute_assignments(self, observation):
        for account in observation.values("PUTS_SEC", "tenant"):
            yield Assign(account, "noop")
"""


@pytest.fixture
def file(tmp_path):
    """A function that writes code and returns its path."""

    def write(text, help_text="first"):
        (tmp_path / "code.py").write_text(text.replace("HELP", help_text))
        return str(tmp_path / "code.py")

    return write


@pytest.fixture
def as_json(sluice):
    """A function that runs ``sluice … -f json`` and returns the output."""
    return lambda *words: json.loads(sluice(*words, "-f", "json").out)


def test_a_native_filter_says_itself_what_it_is_and_its_revisions_come_and_go(sluice, as_json, node, file, tmp_path):
    words = ["filter", "create", "marked", "--environment", "native", "--code", file(FILTER)]
    made = as_json(*words)
    assert (made["environment"], made["main"], made["revision"], made["help"]) == ("native", "Marked", 1, "first")
    assert made["capabilities"]["stage"] == 430
    second = as_json("filter", "upload", "marked", file(FILTER, "second"))
    assert (second["revision"], second["help"], second["revisions"][0]["revision"]) == (2, "second", 1)
    node("n1", code={"marked": 1}, refused={"upload/marked": "no module `x`"})
    shown = as_json("filter", "rollout", "show", "marked")
    assert (shown["rolled_out"], shown["refused"]) == (
        "0/1",
        [{"node": "n1", "reason": "no module `x`", "revision": 1}],
    )
    assert "goes on with revision 1" in sluice("filter", "rollout", "show", "marked", "--watch", status=1).err
    back = as_json("filter", "rollback", "marked")
    assert (back["revision"], back["help"], back["sha256"]) == (3, "first", made["sha256"])
    assert "kept are 2, 1" in sluice("filter", "rollback", "marked", "--revision", "9", status=1).err
    node("n1", code={"marked": 3})
    watched = sluice("filter", "rollout", "show", "marked", "--watch", "-f", "value", "-c", "rolled_out")
    assert (watched.out, watched.err) == ("1/1\n", "revision 3 on 1/1 nodes\n")
    sluice("filter", "download", "marked", str(tmp_path / "copy"))
    assert (tmp_path / "copy").read_text() == FILTER.replace("HELP", "first")


def test_an_installed_filter_is_shown_and_neither_changed_nor_rolled_out(sluice, as_json, file):
    shown = as_json("filter", "show", "compression")
    assert (shown["installed"], shown["main"], shown["reverse"]) == (True, "Compression", True)
    assert "rollout" in sluice("filter", "show", "compression").out
    for words in (["set", "compression", "--self-service"], ["delete", "compression"], ["rollback", "compression"]):
        assert "is installed with the software" in sluice("filter", *words, status=1).err
    assert "(HTTP 405)" in sluice("filter", "upload", "compression", file(FILTER), status=1).err
    for more in ([], ["--watch"]):
        assert "nothing is rolled out" in sluice("filter", "rollout", "show", "compression", *more, status=1).err


def test_broken_code_is_refused_with_the_reason_and_nothing_is_left(sluice, file):
    sluice("filter", "create", "marked", "--environment", "native")
    said = sluice("filter", "upload", "marked", file("import os\n\nclass Marked(\n"), status=1)
    assert "(HTTP 400)" in said.err
    assert "line 3" in said.err
    refused = sluice("filter", "create", "other", "--environment", "native", "--reverse", status=1)
    assert "`reverse`" in refused.err


def test_a_metric_is_uploaded_started_stopped_and_gone_back_from(sluice, as_json, node, file):
    made = as_json("metric", "upload", "HEADS_SEC", file(METRIC))
    assert (made["running"], made["uploaded"], made["unit"]) == (False, True, "per_second")
    node("n1", code={"metric/HEADS_SEC": 1})
    assert as_json("metric", "instance", "list", "HEADS_SEC")[0]["State"] == "stopped"
    assert sluice("metric", "start", "HEADS_SEC").out == "metric HEADS_SEC is started\n"
    node("n1", code={"metric/HEADS_SEC": 1})
    (instance,) = as_json("metric", "instance", "list", "HEADS_SEC")
    assert instance == {"Node": "n1", "State": "running", "Revision": 1, "Reason": ""}
    as_json("policy", "create", "FOR TENANT AUTH_a WHEN HEADS_SEC > 5 DO SET noop")
    assert "(HTTP 409)" in sluice("metric", "stop", "HEADS_SEC", status=1).err
    as_json("metric", "upload", "HEADS_SEC", file(METRIC + "\n# again\n"))
    assert as_json("metric", "rollback", "HEADS_SEC", "--revision", "1")["revision"] == 3
    assert sluice("metric", "stop", "HEADS_SEC", "--force").out == "metric HEADS_SEC is stopped\n"


def test_a_controller_is_uploaded_started_stopped_and_forgotten(sluice, as_json, file):
    made = as_json("controller", "upload", "busy", file(CONTROLLER))
    assert (made["state"], made["running"], made["metrics"], made["main"]) == ("stopped", False, ["PUTS_SEC"], "Busy")
    assert sluice("controller", "start", "busy").out == "controller busy is started\n"
    (listed,) = as_json("controller", "list")
    assert (listed["State"], listed["Hosts"]) == ("starting", [])
    assert as_json("controller", "instance", "list", "busy") == []
    as_json("controller", "upload", "busy", file(CONTROLLER, "second"))
    assert as_json("controller", "rollback", "busy")["help"] == "first"
    assert sluice("controller", "stop", "busy").out == "controller busy is stopped\n"
    assert as_json("controller", "show", "busy")["running"] is False
    assert sluice("controller", "delete", "busy").out == "controller busy is deleted\n"
    assert "(HTTP 404)" in sluice("controller", "show", "busy", status=1).err


def test_a_node_shows_what_it_can_run(as_json, node):
    node("n1", code={"marked": 2}, sandbox={"wasm": "ok"})
    shown = as_json("node", "show", "n1")
    assert (shown["code"], shown["sandbox"]) == ({"marked": 2}, {"wasm": "ok"})
