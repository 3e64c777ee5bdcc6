"""The page about events has the present limits."""

from pathlib import Path

from sluice_core.store.events import LIMITS

PAGE = (Path(__file__).resolve().parents[1] / "admin" / "events.md").read_text()


def test_the_limits_are_those_of_the_log():
    assert f"newest {LIMITS.length:,} events" in PAGE
    assert f"log {LIMITS.burst} events at once, and one more every two minutes" in PAGE
    assert (LIMITS.repeat, LIMITS.refill, LIMITS.pause) == (3600.0, 120.0, 300.0)
    assert 3600 / LIMITS.refill + 3600 / LIMITS.pause == 42
