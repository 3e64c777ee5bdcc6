"""A real Redis for the session, and the API on it, empty for each test."""

from __future__ import annotations

import os

import pytest
from tests.support.cluster import redis_fixtures

from sluice_aio.base.ports import free_port

redis_server = redis_fixtures.redis_server

# Test modules import parts of the API, which read settings at their import.
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "sluice_controller.app.settings")

TOKEN = "an-admin-token-for-tests"


@pytest.fixture(scope="session")
def token_file(tmp_path_factory):
    path = tmp_path_factory.mktemp("token") / "token"
    path.touch(mode=0o600)
    path.write_text(TOKEN + "\n")
    return path


@pytest.fixture(scope="session")
def django_ready():
    import django

    django.setup()


@pytest.fixture
def config(django_ready, redis_server, token_file):
    from django.test import override_settings

    from sluice_controller.config import Config

    made = Config(auth="token", redis_url=redis_server.url, redis_prefix=f"t{free_port()}", token_file=str(token_file))
    with override_settings(SLUICE=made):
        yield made


@pytest.fixture
def backend(config):
    """The backend of the views; its Redis keys belong to this test alone."""
    from sluice_controller.catalog.backend import open_backend

    open_backend.cache_clear()
    made = open_backend(config)
    made.store.client.flushdb()
    yield made
    made.store.close()
    open_backend.cache_clear()


@pytest.fixture
def create(api):
    """A function that creates the policy of one sentence and returns its representation."""

    def post(sentence):
        response = api.post("/policies", {"policy": sentence}, format="json")
        assert response.status_code == 201, response.content
        return response.json()

    return post


@pytest.fixture
def api(backend):
    from tests.support.controller.checked_client import CheckedClient

    return CheckedClient(headers={"X-Auth-Token": TOKEN})


@pytest.fixture
def code_swift(backend):
    """A small Swift in which the API stores uploaded code."""
    from tests.support.controller.swift_code_store import fake_code_swift

    with fake_code_swift() as server:
        object.__setattr__(backend, "code", server.code_store())
        yield server


@pytest.fixture
def send_code(api, code_swift):
    """A function that uploads code and returns the answer, whose status must be the given one."""

    def send(path, code, status=200, **headers):
        data = code if isinstance(code, bytes) else code.encode()
        response = api.put(path, data, content_type="application/octet-stream", headers=headers)
        assert response.status_code == status, response.content
        return response

    return send


@pytest.fixture
def in_between(backend, monkeypatch):
    """Let ``event`` happen once, when the next change has been decided and not been committed yet."""
    commit = backend.store.commit

    def arrange(event):
        def first(draft):
            monkeypatch.setattr(backend.store, "commit", commit)
            event()
            return commit(draft)

        monkeypatch.setattr(backend.store, "commit", first)

    return arrange
