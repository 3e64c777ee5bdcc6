"""The protocol in a simulated cluster, and protocols that are wrong in one place each."""

import pytest
from tests.support.objects import wrong_protocols as wrong
from tests.support.objects.simulation import Violation, World

from sluice_objects.protocol.acceptor import Acceptor
from sluice_objects.protocol.home import Home
from sluice_objects.serving import ServedObject

STEPS = 1200


def run(seed, variant=World, **frequencies):
    """A run in which the ring moves and disks lose files often."""
    parts = {"acceptor": Acceptor, "home": Home, "served": ServedObject}
    chosen = {name: variant for name, part in parts.items() if issubclass(variant, part)}
    world = variant if issubclass(variant, World) else World
    made = world(seed, **{"moves": 0.1, "wear": 0.02, **frequencies}, **chosen)
    made.run(STEPS)
    return made


@pytest.mark.parametrize("old", [0.03, 0.5])
def test_what_clients_are_told_is_one_sequence(old):
    counts = [run(seed, old=old).counts for seed in range(120)]
    total = {name: sum(one[name] for one in counts) for name in counts[0]}
    # otherwise nothing was tried
    assert all(number > 30 for number in total.values()), total


@pytest.mark.parametrize(
    ("variant", "seed", "frequencies"),
    [
        (wrong.NoPromise, 0, {}),
        (wrong.NoHighest, 10, {}),
        (wrong.EqualBallots, 100, {}),
        (wrong.VotersOfRing, 0, {}),
        (wrong.VotersAtOnce, 350, {}),
        (wrong.CreatedByPut, 0, {}),
        (wrong.CreatedByOneRing, 130, {}),
        (wrong.WithoutTakingState, 0, {}),
        (wrong.UnconfirmedReads, 0, {}),
        (wrong.GoesOnAfterUnknown, 0, {}),
        (wrong.PromiseInObject, 0, {}),
        (wrong.SameIncarnation, 160, {"moves": 0.03, "wear": 0.06}),
        (wrong.PlainWrites, 0, {}),
        (wrong.RunsAgain, 0, {}),
        (wrong.NeverRunsAgain, 0, {}),
        (wrong.IgnoresOthers, 0, {}),
        (wrong.KeepsAttempt, 230, {"old": 0.5}),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_a_wrong_protocol_is_found(variant, seed, frequencies):
    def search():
        for number in range(seed, seed + 40):
            run(number, variant, **frequencies)

    with pytest.raises(Violation):
        search()
