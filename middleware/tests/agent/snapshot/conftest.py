"""Agents that check more often for changes outside Redis."""

import pytest

from sluice_agent.snapshot import follower


@pytest.fixture(autouse=True)
def short_reads(monkeypatch):
    monkeypatch.setattr(follower, "_BLOCK_MS", 100)
