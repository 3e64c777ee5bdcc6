"""The API with a Cinder and a konnector in memory."""

import pytest

from sluice_core.messages.nodes import NodeReport
from sluice_volumes.messages import Pool
from sluice_volumes.operations import RECORDS, write_pools
from sluice_volumes.testing.fake_cinder import FakeCinder
from sluice_volumes.testing.fake_konnector import FakeKonnector

GIB = 2.0**30
FAST = Pool(
    "h@nbd#fast", 100 * GIB, 50 * GIB, {"resiliency": "none", "bandwidth": "400", "fabric": "nbd"}, 1.0,
    {"volume_backend_name": "nbd", "pool_name": "fast"},
)  # fmt: skip
SAFE = Pool("h@rbd#safe", 900 * GIB, 500 * GIB, {"resiliency": "3", "bandwidth": "80", "fabric": "rbd"}, 1.0)


@pytest.fixture
def cinder(backend):
    """A Cinder with known pools."""
    made = FakeCinder(FAST, SAFE)
    object.__setattr__(backend, "cinder", made)
    backend.store.run(write_pools(backend.store.keys, made.state.pools))
    return made


@pytest.fixture
def konnector(backend, cinder):
    """The konnector of node ``n1``; ``n2`` has none."""
    made = FakeKonnector()
    object.__setattr__(backend, "konnectors", {"n1": made}.__getitem__)
    backend.store.report(NodeReport("n1", "h", 1, konnector="https://127.0.0.1:8899"))
    backend.store.report(NodeReport("n2", "h", 1))
    return made


@pytest.fixture
def send(api):
    """A function that sends a body, and returns the answer, which must have the status."""

    def ask(method, path, body=None, status=200, **headers):
        given = {} if body is None else {"data": body, "format": "json"}
        answer = getattr(api, method)(path, **given, headers=headers)
        assert answer.status_code == status, answer.content
        return answer.json() if answer.content else None

    return ask


@pytest.fixture
def order(send):
    """A function that starts an operation, and returns it after its end."""

    def ask(method, path, body=None, state="done", **headers):
        found = send(method, path, body, 202, **headers)
        assert (found["state"], found["reason"] != "") == (state, state == "failed"), found
        return found

    return ask


@pytest.fixture
def message(send):
    """The message of a refused request."""

    def ask(method, path, body=None, status=409):
        return send(method, path, body, status)["error"]["message"]

    return ask


@pytest.fixture
def volume(order, cinder):
    """A volume of 1 GiB with the name ``data1``; its id."""
    return order("post", "/volumes", {"size": 1, "name": "data1"})["volume"]


@pytest.fixture
def record(backend, volume):
    """A function that reads Sluice's record of the volume."""
    return lambda: backend.store.run(RECORDS.read(backend.store.keys, volume))


@pytest.fixture
def attach(order, konnector, volume):
    """A function that attaches the volume to node ``n1``."""
    return lambda state="done", **body: order("post", f"/volumes/{volume}/attach", {"node": "n1", **body}, state)
