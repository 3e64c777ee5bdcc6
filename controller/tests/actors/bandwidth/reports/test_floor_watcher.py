"""The events that floors are short, and that they are met again."""

import pytest

from sluice_actors.bandwidth.reports.report_writer import FloorWatcher
from sluice_core.messages.events import FLOOR_MET, FLOOR_SHORT


@pytest.fixture
def rounds():
    """A function that plays one round a second, with the missing rate of policy `p`, and returns the new events."""
    logged, now = [], [0.0]
    watcher = FloorWatcher(lambda kind, text, source="", **more: logged.append((kind, more["policy"], text)))

    def play(*missing):
        before = len(logged)
        for rate in missing:
            watcher.update({"p": rate} if rate else {}, now[0])
            now[0] += 1.0
        return logged[before:]

    return play


def test_a_lasting_shortfall_is_logged_once(rounds):
    assert rounds(*[2e6] * 5) == []
    text = "2.000 MB/s are missing to the floors of policy `p`"
    assert rounds(*[2e6] * 100) == [(FLOOR_SHORT, "p", text)]


def test_a_short_one_is_not(rounds):
    assert rounds(*[1e6] * 4, 0, *[1e6] * 4, 0) == []


def test_it_ends_when_nothing_was_missing_for_a_minute(rounds):
    rounds(*[1e6] * 7)
    assert rounds(*[0] * 30, 1e6, *[0] * 59) == []
    assert [kind for kind, _, _ in rounds(0, 0)] == [FLOOR_MET]
    assert [kind for kind, _, _ in rounds(*[1e6] * 7)] == [FLOOR_SHORT]
