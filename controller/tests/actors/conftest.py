"""What tests of actor hosts share: a real RabbitMQ for the session, and a quiet log."""

import logging

import pytest

from sluice_aio.base.backing_servers import RabbitServer
from sluice_aio.base.ports import free_port


@pytest.fixture(autouse=True)
def quiet_pika():
    """pika reports each step of each failed attempt to reach the broker that is not there."""
    logger = logging.getLogger("pika")
    logger.setLevel(logging.CRITICAL)
    yield
    logger.setLevel(logging.NOTSET)


@pytest.fixture(scope="session")
def rabbit_server(tmp_path_factory):
    folder = tmp_path_factory.mktemp("rabbit")
    with RabbitServer(free_port(), free_port(), free_port(), folder, tied=True) as server:
        yield server
