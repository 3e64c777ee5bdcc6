"""The silent nodes that count as failed, by the bytes of the other side: both directions, several methods."""

import pytest
from tests.support.actors.bandwidth import flow_row, node_load

from sluice_actors.bandwidth.failure_detector import FailureDetector
from sluice_actors.bandwidth.loads.node_loads import NodeLoads
from sluice_core.describe import PROXY, STORAGE_NODE
from sluice_core.messages.bandwidth import GET, PUT

SIDES = {"p1": PROXY, "p2": PROXY, "s1": STORAGE_NODE, "s2": STORAGE_NODE}


class Nodes:
    """Two proxies and two storage nodes, which report each second."""

    def __init__(self, *held):
        self.detector = FailureDetector()
        self.loads = NodeLoads()
        self.held = held
        self.second = 0

    def run(self, seconds, **moved):
        """Node → method → MB/s; returns the failed nodes. Other nodes are silent."""
        for _ in range(seconds):
            self.second += 1
            for name, rates in moved.items():
                rows = (flow_row("AUTH_a", rate, SIDES[name], method=method) for method, rate in rates.items())
                self.loads.feed(node_load(name, self.second, *rows, sides=(SIDES[name],)), float(self.second))
            failed = self.detector.detect(self.loads, self.second + 0.1, self.held)
        return failed


@pytest.mark.parametrize(("proxies", "failed"), [(20, {"s2"}), (40, set())])
def test_a_storage_node_fails_when_proxies_move_only_what_the_others_read(proxies, failed):
    """Caches serve half of the bytes that proxies move."""
    nodes = Nodes((GET, STORAGE_NODE))
    nodes.run(5, p1={GET: 40}, p2={GET: 40}, s1={GET: 20}, s2={GET: 20})
    assert nodes.run(4, p1={GET: proxies}, p2={GET: proxies}, s1={GET: 20}) == failed


@pytest.mark.parametrize(("written", "failed"), [(20, {"p2"}), (40, set())])
def test_a_node_has_not_failed_while_bytes_of_any_method_are_unaccounted(written, failed):
    nodes = Nodes((GET, PROXY), (PUT, PROXY))
    both = {GET: 40, PUT: 40}
    nodes.run(5, p1=both, p2=both, s1=both, s2=both)
    rest = {GET: 20, PUT: written}
    assert nodes.run(4, p1=both, s1=rest, s2=rest) == failed


def test_a_failed_node_has_failed_still_when_a_little_is_unaccounted():
    nodes = Nodes((GET, PROXY))
    nodes.run(5, p1={GET: 40}, p2={GET: 40}, s1={GET: 40}, s2={GET: 40})
    assert nodes.run(4, p1={GET: 40}, s1={GET: 23}, s2={GET: 23}) == set()
    assert nodes.run(1, p1={GET: 40}, s1={GET: 20}, s2={GET: 20}) == {"p2"}
    assert nodes.run(1, p1={GET: 40}, s1={GET: 23}, s2={GET: 23}) == {"p2"}
    assert nodes.run(1, p1={GET: 40}, s1={GET: 25}, s2={GET: 25}) == set()
