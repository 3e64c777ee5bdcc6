"""``/overview``: counts of everything for administrators, of their own policies for other callers."""

import time
from dataclasses import replace

import pytest
from tests.support.controller.checked_client import CheckedClient

from sluice_controller.identity.caller import IDENTITY, Identity
from sluice_core.messages.bandwidth_report import BandwidthReport
from sluice_core.messages.nodes import NodeReport
from sluice_core.messages.policies import PolicyState
from sluice_core.store.operations import REPORT_RETENTION
from sluice_core.store.records import Draft

RITA = Identity.from_user("u-rita", "rita", "acme-id", "acme", ("reader",))
UNA = Identity.from_user("u-una", "una", roles=("reader",))


@pytest.fixture
def cluster(api, backend, create):
    """Three nodes, two hosts, five policies of which one belongs to acme."""
    store = backend.store
    own = create("FOR CONTAINER AUTH_acme-id/logs WHEN PUTS_SEC > 3 DO SET noop")["id"]
    others = [create(f"FOR TENANT AUTH_{number} WHEN PUTS_SEC > 3 DO SET noop")["id"] for number in range(3)]
    create("FOR TENANT AUTH_s DO SET compression")
    assert api.put(f"/policies/{others[2]}", {"enabled": False}, format="json").status_code == 200
    store.commit(Draft("t", states=(PolicyState(own, "failed"), PolicyState(others[0], "active"))))
    head = store.head()
    store.report(NodeReport("n1", head.history, head.epoch, at=time.time(), refused={f"{own}.0": "no", "x.0": "no"}))
    store.report(NodeReport("n2", head.history, head.epoch, "failed", at=time.time()))
    store.report(NodeReport("n3", head.history, head.epoch, at=1.0))
    store.host_report("h1", {"at": time.time(), "bus": True})
    store.host_report("h2", {"at": 1.0, "bus": True})
    return own, others


def test_an_administrator_sees_all_counts(api, backend, cluster):
    own, others = cluster
    report = BandwidthReport(time.time(), "h1", 1, 1, infeasible={own: 2e6, others[0]: 3e6, "gone": 1e6})
    backend.store.client.set(backend.store.keys.bandwidth, report.encode(), ex=int(REPORT_RETENTION))
    found = api.get("/overview").json()
    counts = {"total": 5, "active": 2, "waiting": 1, "failed": 1, "disabled": 1, "refused": 1}
    assert found["policies"] == counts
    assert found["floors"] == {"short": 2, "shortfall": 5e6, "stale": False}
    nodes = {"total": 3, "ok": 1, "stale_history": 0, "failed": 1, "away": 1, "refusing": 1}
    assert found["cluster"]["nodes"] == nodes
    assert found["cluster"]["hosts"] == {"alive": 1, "away": 1}
    assert found["cluster"]["dependencies"] == api.get("/health").json()["dependencies"]


def test_without_a_measurement_nothing_is_said_of_floors(api):
    assert api.get("/overview").json()["floors"] == {"short": 0, "shortfall": 0.0, "stale": True}


def test_a_reader_of_a_project_sees_the_counts_of_its_own_policies(config, backend, cluster):
    from django.test import override_settings

    with override_settings(SLUICE=replace(config, auth="keystone")):
        found = CheckedClient(**{IDENTITY: RITA}).get("/overview").json()
        assert CheckedClient(**{IDENTITY: UNA}).get("/overview").status_code == 403
    assert found["policies"] == {"total": 1, "active": 0, "waiting": 0, "failed": 1, "disabled": 0, "refused": 1}
    assert found["cluster"] is None
