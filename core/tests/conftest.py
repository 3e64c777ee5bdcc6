"""A real Redis for the whole session, emptied for each test; a real RabbitMQ on demand."""

import pytest

from sluice_aio.cluster.services import RabbitServer, RedisServer, free_port
from sluice_core.store.store import Store


@pytest.fixture(scope="session")
def redis_server(tmp_path_factory):
    with RedisServer(free_port(), tmp_path_factory.mktemp("redis"), tied=True) as server:
        yield server


@pytest.fixture
def store(redis_server):
    store = Store(redis_server.url)
    store.client.flushall()
    yield store
    store.close()


@pytest.fixture(scope="session")
def rabbit_server(tmp_path_factory):
    folder = tmp_path_factory.mktemp("rabbit")
    with RabbitServer(free_port(), free_port(), free_port(), folder, tied=True) as server:
        yield server
