"""Native code is for administrators only, whatever rules a policy file has for filters."""

from __future__ import annotations

import os
from dataclasses import replace

import pytest

from sluice_controller.identity.caller import IDENTITY, Identity

ADA = replace(Identity.from_user("u-ada", "ada", "acme-id", "acme", ("admin",)), is_admin=True)
ALICE = Identity.from_user("u-alice", "alice", "acme-id", "acme", ("member", "reader"))
VERA = Identity.from_user("u-vera", "vera", "acme-id", "acme", ("vetter", "reader"))
NATIVE = {"keyword": "invert", "environment": "native"}
OF_VOLUMES = {"keyword": "rot", "environment": "nbdkit", "reverse": True}
ISOLATED = {"keyword": "scramble", "environment": "wasm", "language": "wasm"}
#: An operator who lets the role `vetter` manage isolated filters.
VETTERS = "".join(
    f'"sluice:filters:{what}": "role:admin or role:vetter"\n' for what in ("register", "update", "upload", "rollback")
)


@pytest.fixture
def people(backend, config, code_swift, tmp_path):
    """A function that returns a user's client, under an operator's rules."""
    from django.test import override_settings
    from tests.support.controller.checked_client import CheckedClient

    from sluice_controller.catalog.backend import current_backend

    path = tmp_path / "policy.yaml"
    path.write_text(VETTERS)
    with override_settings(SLUICE=replace(config, auth="keystone", policy_file=str(path))):
        object.__setattr__(current_backend(), "code", code_swift.code_store())
        yield lambda identity: CheckedClient(**{IDENTITY: identity})
        current_backend().store.close()


CALLS = [
    ("put", "/registry/metrics/X/data"),
    ("get", "/registry/metrics/X/data"),
    ("post", "/registry/metrics/X/start"),
    ("post", "/registry/metrics/X/stop"),
    ("post", "/registry/metrics/X/rollback"),
    ("get", "/registry/metrics/X/instances"),
    ("get", "/controllers"),
    ("get", "/controllers/x"),
    ("delete", "/controllers/x"),
    ("put", "/controllers/x/data"),
    ("get", "/controllers/x/data"),
    ("post", "/controllers/x/start"),
    ("post", "/controllers/x/stop"),
    ("post", "/controllers/x/rollback"),
    ("get", "/controllers/x/instances"),
    ("post", "/filters/x/rollback"),
]


@pytest.mark.parametrize(("method", "path"), CALLS)
def test_members_and_readers_may_not_change_code(people, method, path):
    content = {"data": b"x", "content_type": "application/octet-stream"} if path.endswith("data") else {}
    answer = getattr(people(ALICE), method)(path, **(content if method == "put" else {}))
    assert answer.status_code == 403, answer.content
    assert "admin" in answer.json()["error"]["message"]


def test_whoever_may_upload_isolated_filters_may_not_upload_native_ones(people):
    vera, ada = people(VERA), people(ADA)
    assert vera.post("/filters", ISOLATED, format="json").status_code == 201
    binary = {"content_type": "application/octet-stream"}
    assert vera.put("/filters/scramble/data", b"\0asm", **binary).status_code == 200
    for code in (NATIVE, OF_VOLUMES):
        assert vera.post("/filters", code, format="json").status_code == 403
    assert ada.post("/filters", NATIVE, format="json").status_code == 201
    for refused in (
        vera.put("/filters/invert/data", b"x = 1", **binary),
        vera.put("/filters/invert", {"self_service": True}, format="json"),
        vera.put("/filters/scramble", {"environment": "native"}, format="json"),
        vera.post("/filters/invert/rollback", {}, format="json"),
    ):
        assert refused.status_code == 403, refused.content
        assert "`sluice:filters:native`" in refused.json()["error"]["message"]


def test_the_schema_warns_of_native_code(api):
    schema = api.get("/schema").json()
    for path in ("/filters/{keyword}/data", "/registry/metrics/{metric}/data", "/controllers/{controller}/data"):
        text = schema["paths"][path]["put"]["description"]
        assert "administrators only" in text
        assert "with all rights" in text


def test_native_code_in_an_import_needs_the_same_rule(people, tmp_path):
    path = tmp_path / "policy.yaml"
    allowed = '"sluice:configuration:import": "role:vetter"\n"sluice:changes:rollback": "role:vetter"\n'
    path.write_text(VETTERS + allowed)
    os.utime(path, (path.stat().st_mtime + 10,) * 2)
    filters = f"[{{keyword: x, environment: native, language: python, main: X, sha256: {'a' * 64}, size: 1}}]"
    document = {"data": f"sluice: 1\nfilters: {filters}", "content_type": "application/yaml"}
    for query in ("", "?plan=true"):
        refused = people(VERA).put(f"/import{query}", **document)
        assert refused.status_code == 403, refused.content
        assert "`sluice:filters:native`" in refused.json()["error"]["message"]
    assert people(VERA).put("/import", "sluice: 1", content_type="application/yaml").status_code == 200
