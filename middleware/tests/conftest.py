"""A Redis for the tests of agents; a worker's client and an agent for credit; and Swift's part in tests of copies.

Swift is imported late, since other tests run without it.
"""

import logging
import os
from contextlib import contextmanager
from types import SimpleNamespace

import pytest
from tests.support.cluster import redis_fixtures

from sluice_core.describe import PROXY

redis_server = redis_fixtures.redis_server
store = redis_fixtures.store


@pytest.fixture
def path(tmp_path):
    """Path of an agent's socket, short enough for one."""
    return os.path.relpath(tmp_path / "agent.sock")


@pytest.fixture
def agent(path):
    """An agent at ``path`` that grants credit as a test wants."""
    from tests.support.middleware.credit_agent import FakeAgent

    made = FakeAgent(path)
    yield made
    made.close()
    made.wait_briefly()


@pytest.fixture
def clock():
    """A clock that a test advances."""
    from tests.support.middleware.credit_agent import Clock

    return Clock()


@pytest.fixture
def line(path, clock, agent):
    """A proxy's client of the agent, on that clock; not connected yet."""
    from sluice_middleware.bandwidth.agent_client import CreditClient

    made = CreditClient(path, PROXY, policies={"0": "gold"}, clock=clock)
    yield made
    made.disconnect()
    agent.wait_briefly()


@contextmanager
def serving(node):
    """The node's object server at a port."""
    from swift.common.concurrency import GreenPool, Timeout, listen, spawn, wsgi

    listener = listen(("127.0.0.1", 0))
    silent = logging.getLogger("silent")
    pool = GreenPool()
    thread = spawn(wsgi.server, listener, node.server, log=silent, log_output=False, custom_pool=pool)
    try:
        yield listener.getsockname()[1]
        with Timeout(30):
            pool.waitall()
    finally:
        thread.kill()
        listener.close()


@pytest.fixture
def ssync():
    """Run a replicator (or reconstructor) for one partition; return its success, and the objects that it may delete
    then.

    ``job`` has further keys of the sender's job, ``place`` of the other node; ``daemon`` of the sender.
    """
    from swift.obj.ssync_sender import Sender

    from sluice_middleware.swift.diskfile_api import POLICIES

    def send(source, target, policy=0, sender=Sender, job=(), place=(), **daemon):
        daemon = SimpleNamespace(
            _df_router=source.server._diskfile_router,
            logger=source.log,
            conn_timeout=5,
            http_timeout=20,
            network_chunk_size=65536,
            **{"node_timeout": 20, **daemon},
        )
        job = {"device": "sda", "partition": "0", "policy": POLICIES[policy], "frag_index": None, **dict(job)}
        suffixes = [suffix for _, suffix in source.manager(policy).yield_suffixes("sda", "0", POLICIES[policy])]
        with serving(target) as port:
            there = {"replication_ip": "127.0.0.1", "replication_port": port, "device": "sda", "index": 0}
            return sender(daemon, {**there, **dict(place)}, job, suffixes)()

    return send
