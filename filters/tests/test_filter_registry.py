"""Built-in filters and strangers'."""

from __future__ import annotations

from importlib.metadata import EntryPoint

import pytest

from sluice_core import plugins
from sluice_core.describe import FILTER, ActionInfo
from sluice_filters import registry
from sluice_filters.api import Filter
from sluice_filters.noop import Noop


class Sepia(Filter):
    info = ActionInfo("sepia", FILTER, "a stranger's")


class Taken(Filter):
    info = ActionInfo("noop", FILTER, "a stranger's")


class UpperCase(Filter):
    info = ActionInfo("SEPIA", FILTER, "a stranger's")


class Bare(Filter):
    pass


def load(name):
    if name == "nothing:there":
        raise ImportError("no module `nothing`")
    return globals()[name]


def installed(monkeypatch, value):
    entry = EntryPoint("plugin", value, registry.GROUP)
    monkeypatch.setattr(plugins, "entry_points", lambda group: [entry] if group == registry.GROUP else [])
    monkeypatch.setattr(EntryPoint, "load", lambda self: load(self.value))


def test_the_literal_list_is_what_there_is(monkeypatch):
    monkeypatch.setattr(plugins, "entry_points", lambda group: [])
    assert list(registry.load_filters()) == ["noop", "compression"]
    assert registry.descriptions()["noop"] is Noop.info


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ("nothing:there", "ImportError: no module `nothing`"),
        ("load", "is not a subclass of Filter"),
        ("Bare", "it has no `info`"),
        ("UpperCase", "is not in lower case"),
        ("Taken", "name `noop` is taken"),
    ],
)
def test_a_plugin_that_cannot_be_used_is_reported_and_left_out(monkeypatch, caplog, value, reason):
    installed(monkeypatch, value)
    failures = {}
    assert list(registry.load_filters(failures).values()) == list(registry.BUILT_IN)
    assert reason in failures["plugin"]
    assert reason in caplog.text


@pytest.mark.parametrize(("value", "keyword"), [("Sepia", "sepia"), ("Noop", "noop")])
def test_a_good_plugin_is_found(monkeypatch, value, keyword):
    installed(monkeypatch, value)
    failures = {}
    assert registry.load_filters(failures)[keyword] is globals()[value]
    assert failures == {}
