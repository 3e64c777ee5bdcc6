"""Agents that look more often whether something but Redis has changed."""

import pytest

from sluice_agent.snapshot import follower


@pytest.fixture(autouse=True)
def short_reads(monkeypatch):
    monkeypatch.setattr(follower, "_BLOCK_MS", 100)
