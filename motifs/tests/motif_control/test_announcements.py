"""No object is contracted before all processes support motifs, nor while one does not."""

import pytest

from sluice_core.errors import PeerError
from sluice_core.messages.nodes import NodeReport
from sluice_motif_control.announcements import READY, ContractionGuard, suspension


def report(name, motifs=READY, at=100.0):
    return NodeReport(name, "h", 1, software="sluice 1.0", at=at, motifs=motifs)


def test_contraction_needs_every_node():
    assert suspension([report("n1"), report("n2")], 100.0, 15.0) == ""


@pytest.mark.parametrize(
    ("nodes", "reason"),
    [
        ([], "no node has reported"),
        ([report("n1"), report("n2", "")], "node `n2` runs `sluice 1.0`, which does not know motifs"),
        (
            [report("n1", "waiting for proxy worker 7"), report("n2")],
            "node `n1` is waiting for proxy worker 7",
        ),
        (
            [report("n1", at=80.0)],
            "node `n1` has not reported for 20 s (forget the node if it does not exist any more)",
        ),
    ],
)
def test_one_that_does_not_know_motifs_suspends_contraction(nodes, reason):
    assert suspension(nodes, 100.0, 15.0) == reason


def test_a_reason_names_few_of_many_nodes():
    text = suspension([report(f"n{number:02}", "") for number in range(9)], 100.0, 15.0)
    assert text.endswith("node `n04` runs `sluice 1.0`, which does not know motifs, and 4 more")


def test_the_guard_remembers_for_a_moment_and_refuses_while_nobody_can_be_asked():
    answers = [[report("n1")], [report("n1", "")]]
    now = [100.0]
    guard = ContractionGuard(lambda: answers[0], lambda: now[0], interval=2.0)
    assert guard() == ""
    del answers[0]
    now[0] = 101.0
    assert guard() == ""
    now[0] = 103.0
    assert "does not know motifs" in guard()

    def away():
        raise PeerError("Redis is away")

    assert ContractionGuard(away, lambda: 1.0)() == "what the nodes report cannot be read: Redis is away"
