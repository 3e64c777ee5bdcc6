"""Built-in and third-party filters."""

from __future__ import annotations

from importlib.metadata import EntryPoint

import pytest

from sluice_code import plugins
from sluice_core.describe import FILTER, ActionInfo
from sluice_filters import registry
from sluice_filters.api import Filter, Hint, HostServices
from sluice_filters.basic.noop import Noop
from sluice_filters.testing.fake_filters import FakeKeyRing


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
    monkeypatch.setattr(plugins, "installed_entry_points", lambda group: [entry] if group == registry.GROUP else [])
    monkeypatch.setattr(EntryPoint, "load", lambda self: load(self.value))


def test_the_built_in_filters_are_those_of_the_list(monkeypatch):
    monkeypatch.setattr(plugins, "installed_entry_points", lambda group: [])
    assert list(registry.load_filters().values()) == list(registry.BUILT_IN)
    assert registry.descriptions()["noop"] is Noop.info


def test_the_list_is_in_the_order_of_the_stages():
    stages = [one.info.stage for one in registry.BUILT_IN]
    assert stages == sorted(stages)


def test_no_two_built_ins_have_the_same_keyword_and_each_runs_where_it_says():
    keywords = [one.info.keyword for one in registry.BUILT_IN]
    assert len(set(keywords)) == len(keywords)
    for one in registry.BUILT_IN:
        assert one.info.default_place in one.info.places
        if one.info.reversible:
            assert one.info.places == ("proxy", "storage_node"), one


def test_surroundings_reach_every_filter_of_one_process_only(monkeypatch):
    monkeypatch.setattr(plugins, "installed_entry_points", lambda group: [])
    lent = HostServices(FakeKeyRing())
    bound = registry.load_filters(surroundings=lent)
    assert list(bound) == list(registry.load_filters())
    assert all(one.surroundings is lent for one in bound.values())
    assert all(one().surroundings is lent for one in bound.values() if one.info.reversible)
    assert not [one for one in registry.BUILT_IN if one.surroundings is lent]
    assert bound["encryption"]().encoder(Hint(1)).feed(b"x") == b""


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
