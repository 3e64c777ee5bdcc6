"""A Redis for the tests of what daemons tell each other."""

import pytest

from sluice_aio.base.backing_servers import RedisServer
from sluice_aio.base.ports import free_port


@pytest.fixture(scope="module")
def redis_server(tmp_path_factory):
    with RedisServer(free_port(), tmp_path_factory.mktemp("redis"), tied=True) as server:
        yield server
