"""Built-in and third-party metrics."""

from __future__ import annotations

from importlib.metadata import EntryPoint

import pytest

from sluice_code import plugins
from sluice_core.describe import MetricInfo
from sluice_metrics import registry
from sluice_metrics.api import Metric
from sluice_metrics.builtin.requests import GetsSec


class Errors(Metric):
    info = MetricInfo("ERRORS_SEC", "per_second", "a stranger's")


class Taken(Metric):
    info = MetricInfo("GETS_SEC", "per_second", "a stranger's")


class LowerCase(Metric):
    info = MetricInfo("errors", "per_second", "a stranger's")


class Bare(Metric):
    pass


def installed(monkeypatch, value):
    entry = EntryPoint("plugin", value, registry.GROUP)
    monkeypatch.setattr(plugins, "installed_entry_points", lambda group: [entry] if group == registry.GROUP else [])
    monkeypatch.setattr(EntryPoint, "load", lambda self: load(self.value))


def load(name):
    if name == "nothing:there":
        raise ImportError("no module `nothing`")
    return globals()[name]


def test_the_literal_list_has_ours(monkeypatch):
    monkeypatch.setattr(plugins, "installed_entry_points", lambda group: [])
    bytes_and_requests = ["GETS_SEC", "PUTS_SEC", "GET_BW", "PUT_BW", "THROUGHPUT", "ACTIVE_REQUESTS"]
    responses = ["ERRORS", "HIT_RATIO", "RESPONSE_TIME", "RESPONSE_TIME_P95", "RESPONSE_TIME_P99"]
    assert list(registry.load_metrics()) == [*bytes_and_requests, *responses, "COMPRESSIBILITY"]
    assert registry.descriptions()["GETS_SEC"] is GetsSec.info


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ("nothing:there", "ImportError: no module `nothing`"),
        ("load", "is not a subclass of Metric"),
        ("Bare", "it has no `info`"),
        ("LowerCase", "is not in upper case"),
        ("Taken", "name `GETS_SEC` is taken"),
    ],
)
def test_a_plugin_that_cannot_be_used_is_reported_and_left_out(monkeypatch, caplog, value, reason):
    installed(monkeypatch, value)
    failures = {}
    assert list(registry.load_metrics(failures).values()) == list(registry.BUILT_IN)
    assert reason in failures["plugin"]
    assert reason in caplog.text


@pytest.mark.parametrize(("value", "name"), [("Errors", "ERRORS_SEC"), ("GetsSec", "GETS_SEC")])
def test_a_good_plugin_is_found(monkeypatch, value, name):
    installed(monkeypatch, value)
    failures = {}
    assert registry.load_metrics(failures)[name] is globals()[value]
    assert failures == {}
