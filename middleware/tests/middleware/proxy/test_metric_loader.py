"""Uploaded metrics in a worker: they are added, count and are removed while the proxy serves."""

from __future__ import annotations

import hashlib
import logging
import socket

import pytest

from sluice_code.code_store import CodeStore
from sluice_core.messages.nodes import Counters, Hello
from sluice_core.messages.uploads import Upload
from sluice_metrics.builtin.requests import PutsSec
from sluice_middleware.proxy.metric_reporter import Reporter, WorkerMetrics

CODE = b"""
from sluice_core.describe import MetricInfo
from sluice_metrics.api import Metric

class Deletes(Metric):
    info = MetricInfo("DELETES_SEC", "per_second", "DELETEs per second")

    def admitted(self, method):
        return 1 if method == "DELETE" else 0
"""
SHA256 = hashlib.sha256(CODE).hexdigest()
LIMIT = 30


def uploaded(keyword="DELETES_SEC", **more):
    given = {"kind": "metric", **more}
    return Upload(keyword, "native", "python", "Deletes", SHA256, len(CODE), **given)


@pytest.fixture
def store(tmp_path):
    made = CodeStore(tmp_path / "code")
    made.add(CODE, SHA256)
    made.mark_proven(SHA256, "metric", "Deletes")
    return made


@pytest.fixture
def measuring(store):
    options = {"code_dir": str(store.folder), "busiest_objects": 10}
    return WorkerMetrics({"PUTS_SEC": PutsSec}, options, logging.getLogger("worker"))


def test_a_running_metric_is_counted_and_one_that_is_stopped_is_not(measuring):
    uploads = (uploaded(),)
    assert measuring.apply_uploads(uploads)
    assert not measuring.apply_uploads(uploads)
    assert measuring.meter.names == ("PUTS_SEC", "DELETES_SEC")
    assert measuring.apply_uploads((uploaded(running=False),))
    assert measuring.meter.names == ("PUTS_SEC",)


@pytest.mark.parametrize(
    "one", [uploaded(kind="filter"), uploaded("PUTS_SEC"), uploaded("POSTS_SEC")], ids=["filter", "ours", "another"]
)
def test_an_invalid_uploaded_metric_changes_nothing(measuring, one):
    assert not measuring.apply_uploads((one,))
    assert measuring.meter.names == ("PUTS_SEC",)


def test_without_a_folder_for_code_there_are_no_uploaded_metrics():
    made = WorkerMetrics({"PUTS_SEC": PutsSec}, {"code_dir": "", "busiest_objects": 10}, logging.getLogger("worker"))
    assert not made.apply_uploads((uploaded(),))


@pytest.fixture
def agent(tmp_path):
    """The agent's received messages, one by one."""
    path = str(tmp_path / "agent.sock")
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
        listener.bind(path)
        listener.listen()
        listener.settimeout(LIMIT)
        yield path, listener


def test_the_agent_hears_of_new_columns_before_it_gets_them_and_nothing_is_lost(measuring, agent):
    path, listener = agent
    meter = measuring.meter
    reporter = Reporter(path, meter, {"noop": 1}, lambda: "gen", logging.getLogger("worker"))

    def request(method):
        handle = meter.begin("AUTH_a", "c")
        handle.admitted(method)
        handle.ended(method)

    def rows(connection):
        counters = Counters.decode(connection.recv(1 << 17))
        return {row[0]: tuple(row[2]) for row in counters.rows}

    request("PUT")
    reporter.tick()
    first, _ = listener.accept()
    with first:
        hello = Hello.decode(first.recv(1 << 17))
        assert tuple(hello.metrics) == ("PUTS_SEC",)
        assert rows(first)["AUTH_a"] == (1,)
        request("PUT")
        assert measuring.apply_uploads((uploaded(),))
        reporter.update_actions({"noop": 1})
        request("DELETE")
        reporter.tick()
        second, _ = listener.accept()
        with second:
            again = Hello.decode(second.recv(1 << 17))
            assert (again.worker, tuple(again.metrics)) == (hello.worker, ("PUTS_SEC", "DELETES_SEC"))
            assert rows(second)["AUTH_a"] == (2, 1)
    reporter.disconnect()
