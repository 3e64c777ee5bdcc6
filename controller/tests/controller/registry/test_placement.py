"""``/placements``: the storage policy of a tenant's new containers."""

from dataclasses import replace

import pytest
from django.test import override_settings
from tests.support.controller.swift import fake_swift

from sluice_controller.api.serializers.placement import PLACEMENTS


@pytest.fixture
def swift(config):
    with fake_swift() as fake, override_settings(SLUICE=replace(config, swift_url=fake.url)):
        yield fake


@pytest.fixture
def put(api, swift):
    def send(account, policy="ec42", status=None, **headers):
        answer = api.put(f"/placements/{account}", {"storage_policy": policy}, format="json", headers=headers)
        assert answer.status_code == status or (status is None and answer.status_code in (200, 201)), answer.content
        return answer

    return send


def test_a_placement_is_set_shown_changed_and_deleted(api, put, backend):
    made = put("AUTH_a", "ec42", 201)
    data = made.json()
    assert (data["account"], data["storage_policy"], data["created_by"]) == ("AUTH_a", "ec42", "admin")
    (change,) = backend.store.changes_after(0)
    assert [(one.kind, one.name, one.data) for one in change.entries] == [
        ("placement", "AUTH_a", {"storage_policy": "ec42"})
    ]
    changed = put("AUTH_a", "Policy-0", 200)
    shown = api.get("/placements/AUTH_a")
    assert shown.json() == changed.json()
    assert shown.headers["ETag"] == changed.headers["ETag"] != made.headers["ETag"]
    assert api.delete("/placements/AUTH_a").status_code == 204
    assert api.get("/placements/AUTH_a").status_code == 404
    assert api.delete("/placements/AUTH_a").status_code == 404


def test_setting_the_same_placement_again_changes_nothing(put, backend):
    put("AUTH_a")
    put("AUTH_a", "ec42", 200)
    assert backend.store.head().epoch == 1


def test_an_unknown_storage_policy_is_refused(put, backend):
    assert "did you mean `ec42`" in put("AUTH_a", "ec4", 400).json()["error"]["message"]
    assert backend.store.head().epoch == 0


def test_if_match_guards_it(api, put):
    put("AUTH_a", "ec42", 412, **{"If-Match": '"7"'})
    tag = put("AUTH_a").headers["ETag"]
    put("AUTH_a", "Policy-0", 412, **{"If-Match": '"9999"'})
    put("AUTH_a", "Policy-0", 200, **{"If-Match": tag})
    assert api.delete("/placements/AUTH_a", headers={"If-Match": tag}).status_code == 412


def test_they_are_listed_in_pages_and_by_storage_policy(api, put):
    for account, policy in (("AUTH_b", "ec42"), ("AUTH_a", "Policy-0"), ("AUTH_c", "ec42")):
        put(account, policy)

    def listed(query):
        page = api.get(f"/placements?{query}").json()
        return [one["account"] for one in page["placements"]], page["next_marker"]

    assert listed("limit=2") == (["AUTH_a", "AUTH_b"], "AUTH_b")
    assert listed("limit=2&marker=AUTH_b") == (["AUTH_c"], None)
    assert listed("storage_policy=EC42") == (["AUTH_b", "AUTH_c"], None)
    assert api.get("/placements?limit=0").status_code == 400


@pytest.mark.parametrize("example", PLACEMENTS, ids=lambda one: one.name)
def test_the_examples_of_the_description_work(api, swift, example):
    assert api.put("/placements/AUTH_a", example.value, format="json").status_code == 201


@pytest.fixture
def projects(backend, swift):
    """Projects like those of Keystone: found by name, with accounts that begin with a prefix."""
    from sluice_controller.catalog.backend import current_backend

    native = replace(backend.native, tenants={"acme": "AUTH_42"}, account_prefix="AUTH_")
    object.__setattr__(current_backend(), "native", native)


def test_a_project_is_called_by_its_name_and_kept_by_its_account(api, put, projects):
    assert put("acme").json()["account"] == "AUTH_42"
    assert api.get("/placements/acme").json() == api.get("/placements/AUTH_42").json()
    assert put("AUTH_42", "Policy-0", 200).json()["account"] == "AUTH_42"
    assert [one["account"] for one in api.get("/placements").json()["placements"]] == ["AUTH_42"]
    assert api.delete("/placements/acme").status_code == 204
    assert api.get("/placements/AUTH_42").status_code == 404
    assert api.get("/locality/acme/c/o").json()["account"] == "AUTH_42"


@pytest.mark.parametrize("path", ["/placements/acne", "/locality/acne/c/o"])
def test_what_is_no_project_and_no_account_is_refused(api, swift, projects, path):
    refused = api.get(path)
    assert (refused.status_code, "no project `acne`" in refused.json()["error"]["message"]) == (400, True)


def test_nothing_is_placed_for_an_unknown_project(api, swift, projects, backend):
    body = {"storage_policy": "ec42"}
    assert api.put("/placements/acne", body, format="json").status_code == 400
    assert api.put("/containers/acne/c", body, format="json").status_code == 400
    assert api.delete("/placements/acne").status_code == 400
    assert (backend.store.entries(), swift.containers) == ({}, {})
