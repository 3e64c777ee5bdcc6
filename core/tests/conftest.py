"""A real Redis for the whole session, emptied for each test; a real RabbitMQ on demand."""

import pytest
from tests.support.cluster import redis_fixtures
from tests.support.cluster.certificates import Authority
from tests.support.cluster.secured_services import SecureRabbit

from sluice_aio.base.ports import free_port

redis_server = redis_fixtures.redis_server
store = redis_fixtures.store


@pytest.fixture(scope="session")
def authority(tmp_path_factory):
    return Authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture(scope="session")
def rabbit_server(tmp_path_factory, authority):
    """One broker for all tests, since it takes seconds to start.  It also serves TLS."""
    ports = (free_port(), free_port(), free_port())
    with SecureRabbit(ports, free_port(), tmp_path_factory.mktemp("rabbit"), authority, tied=True) as server:
        yield server
