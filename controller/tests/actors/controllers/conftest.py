"""Controllers of tests answer several times a second, and a failed one is tried again at once."""

import pytest

from sluice_actors.controllers import rollout


@pytest.fixture(autouse=True)
def quick_controllers(monkeypatch):
    monkeypatch.setattr(rollout, "SHORTEST_PERIOD", 0.05)
    monkeypatch.setattr(rollout, "FIRST_PAUSE", 0.05)
