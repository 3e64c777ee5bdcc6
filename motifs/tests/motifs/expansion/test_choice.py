import pytest

from sluice_core.describe import MOTIF, ActionInfo
from sluice_motifs.api import CPU, NETWORK, Source, Template
from sluice_motifs.expansion.choice import CheapestFirst, MachineLoads
from sluice_motifs.items import ItemTable
from sluice_motifs.storage.records import ItemView, Motif, Plain


class Near(Template):
    info = ActionInfo("near", MOTIF, "")

    def sources(self, item):
        return [Source("source")]

    def expand(self, call):
        return iter(())


class Far(Near):
    info = ActionInfo("far", MOTIF, "")
    resource = NETWORK

    def sources(self, item):
        return []


@pytest.fixture
def loads():
    return {}


@pytest.fixture
def items():
    return ItemTable()


@pytest.fixture
def order(items, loads):
    choice = CheapestFirst({"near": Near, "far": Far}, items, lambda: loads)
    for _ in range(50):
        choice.record("near", 1_000_000, 0.1)
        choice.record("far", 1_000_000, 0.15)
    view = ItemView("item", Plain("1", 1_000_000, ""))
    return lambda: [one.template for one in choice(view, [Motif("far"), Motif("near"), Motif("unknown")])]


def test_the_one_that_took_less_time_is_first(order):
    assert order() == ["near", "far", "unknown"]


def test_a_busy_resource_makes_what_waits_for_it_dearer(order, loads):
    loads["cpu"] = 0.9
    assert order() == ["far", "near", "unknown"]


def test_loads_are_those_of_this_machine(items, monkeypatch):
    view, motifs = ItemView("item", Plain("1", 1_000_000, "")), [Motif("far"), Motif("near")]
    for resource, first in ((NETWORK, "near"), (CPU, "far")):
        monkeypatch.setattr(MachineLoads, "__call__", lambda self, resource=resource: {resource: 0.9})
        assert CheapestFirst({"near": Near, "far": Far}, items)(view, motifs)[0].template == first


def test_a_contracted_source_costs_what_making_it_took(order, items):
    items.put("source", 10, expanded=False)
    items.note_expansion("source", 2.0)
    assert order() == ["far", "near", "unknown"]
