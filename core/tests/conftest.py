"""A real Redis for the whole session, emptied for each test; a real RabbitMQ on demand."""

import pytest
from tests.support.cluster.certificates import Authority
from tests.support.cluster.secured_services import SecureRabbit

from sluice_aio.base.backing_servers import RedisServer
from sluice_aio.base.ports import free_port
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
def authority(tmp_path_factory):
    return Authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture(scope="session")
def rabbit_server(tmp_path_factory, authority):
    """One broker for all tests: it takes seconds to start.  It also serves TLS."""
    ports = (free_port(), free_port(), free_port())
    with SecureRabbit(ports, free_port(), tmp_path_factory.mktemp("rabbit"), authority, tied=True) as server:
        yield server
