"""The protocol in a simulated cluster, and protocols that are wrong in one place each."""

import pytest
from tests.support.objects import wrong_protocols as wrong
from tests.support.objects.simulation import Violation, World

from sluice_objects.protocol.acceptor import Acceptor
from sluice_objects.protocol.home import Home
from sluice_objects.serving import ServedObject

STEPS = 1200


def run(seed, variant=World, moves=0.1, wear=0.02):
    """A run in which the ring moves and disks lose files often."""
    parts = {"acceptor": Acceptor, "home": Home, "served": ServedObject}
    chosen = {name: variant for name, part in parts.items() if issubclass(variant, part)}
    world = variant if issubclass(variant, World) else World
    made = world(seed, moves=moves, wear=wear, **chosen)
    made.run(STEPS)
    return made


def test_what_clients_are_told_is_one_sequence():
    counts = [run(seed).counts for seed in range(200)]
    total = {name: sum(one[name] for one in counts) for name in counts[0]}
    # otherwise nothing was tried
    assert all(number > 50 for number in total.values()), total


@pytest.mark.parametrize(
    ("variant", "seed"),
    [
        (wrong.NoPromise, 0),
        (wrong.NoHighest, 90),
        (wrong.EqualBallots, 90),
        (wrong.VotersOfRing, 0),
        (wrong.VotersAtOnce, 250),
        (wrong.CreatedByPut, 0),
        (wrong.CreatedByOneRing, 40),
        (wrong.WithoutTakingState, 0),
        (wrong.UnconfirmedReads, 0),
        (wrong.GoesOnAfterUnknown, 0),
        (wrong.PromiseInObject, 40),
        (wrong.PlainWrites, 0),
        (wrong.RunsAgain, 0),
        (wrong.NeverRunsAgain, 0),
        (wrong.IgnoresOthers, 0),
    ],
    ids=lambda value: getattr(value, "__name__", str(value)),
)
def test_a_wrong_protocol_is_found(variant, seed):
    def search():
        for number in range(seed, seed + 40):
            run(number, variant)

    with pytest.raises(Violation):
        search()


def test_a_wiped_disk_that_votes_as_before_is_found():
    def search():
        for number in range(60, 100):
            run(number, wrong.SameIncarnation, moves=0.03, wear=0.06)

    with pytest.raises(Violation):
        search()
