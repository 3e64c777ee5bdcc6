"""Shared fixtures for actor hosts: a real RabbitMQ for the session, a patient team, and a quiet log."""

import logging

import pytest

from sluice_actors.hosts import members
from sluice_aio.base.backing_servers import RabbitServer
from sluice_aio.base.ports import free_port


@pytest.fixture(autouse=True)
def quiet_pika():
    """pika logs each step of each failed attempt to reach the missing broker."""
    logger = logging.getLogger("pika")
    logger.setLevel(logging.CRITICAL)
    yield
    logger.setLevel(logging.NOTSET)


@pytest.fixture(autouse=True)
def patient_team(monkeypatch):
    """On a busy machine a thread may wait long until it runs; and tooz' threads end only on request."""
    monkeypatch.setattr(members, "BEATS", 20)
    monkeypatch.setattr("futurist._thread.ThreadWorker.MAX_IDLE_FOR", 0.02)


@pytest.fixture(scope="session")
def rabbit_server(tmp_path_factory):
    folder = tmp_path_factory.mktemp("rabbit")
    with RabbitServer(free_port(), free_port(), free_port(), folder, tied=True) as server:
        yield server
