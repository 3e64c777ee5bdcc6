"""The protocol in a simulated cluster, and protocols that are wrong in one place each."""

import pytest
from tests.support.objects import wrong_protocols as wrong
from tests.support.objects.simulation import Violation, World

from sluice_objects.protocol.acceptor import Acceptor
from sluice_objects.protocol.home import Home

STEPS = 1200


def run(seed, variant=World):
    """A run in which the ring moves and disks lose files often."""
    parts = {"acceptor": Acceptor, "home": Home}
    chosen = {name: variant for name, part in parts.items() if issubclass(variant, part)}
    world = variant if issubclass(variant, World) else World
    made = world(seed, moves=0.1, wear=0.02, **chosen)
    made.run(STEPS)
    return made


def test_what_clients_are_told_is_one_sequence():
    counts = [run(seed).counts for seed in range(120)]
    total = {name: sum(one[name] for one in counts) for name in counts[0]}
    # otherwise nothing was tried
    assert all(number > 20 for number in total.values()), total


@pytest.mark.parametrize(
    ("variant", "seed"),
    [
        (wrong.NoPromise, 0),
        (wrong.NoHighest, 130),
        (wrong.EqualBallots, 0),
        (wrong.VotersOfRing, 0),
        (wrong.VotersAtOnce, 60),
        (wrong.CreatedByPut, 0),
        (wrong.CreatedByOneRing, 130),
        (wrong.WithoutTakingState, 0),
        (wrong.UnconfirmedReads, 150),
        (wrong.GoesOnAfterUnknown, 0),
        (wrong.PromiseInObject, 0),
        (wrong.SameIncarnation, 0),
        (wrong.PlainWrites, 0),
    ],
    ids=lambda value: getattr(value, "__name__", str(value)),
)
def test_a_wrong_protocol_is_found(variant, seed):
    def search():
        for number in range(seed, seed + 40):
            run(number, variant)

    with pytest.raises(Violation):
        search()
