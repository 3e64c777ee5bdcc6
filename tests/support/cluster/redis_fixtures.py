"""Fixtures of a real Redis, for conftests: one server for a session and a folder, emptied for each test."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from sluice_aio.base.backing_servers import RedisServer
from sluice_aio.base.ports import free_port
from sluice_core.store.store import Store


@pytest.fixture(scope="session")
def redis_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisServer]:
    with RedisServer(free_port(), tmp_path_factory.mktemp("redis"), tied=True) as server:
        yield server


@pytest.fixture
def store(redis_server: RedisServer) -> Iterator[Store]:
    store = Store(redis_server.url)
    store.client.flushall()
    yield store
    store.close()
