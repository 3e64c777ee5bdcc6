"""Single members are added and removed: small changes, each of which is shown, undone, and imported."""

import pytest
import yaml

HERE = "/registry/gtenants/gold"


@pytest.fixture
def gold(api):
    made = api.post("/registry/gtenants", {"name": "gold", "tenants": ["AUTH_a", "AUTH_b"]}, format="json")
    assert made.status_code == 201, made.content


def tenants(api):
    return api.get(HERE).json()["tenants"]


def newest(backend):
    return backend.store.changes_after(backend.store.head().epoch - 1)[0]


def test_adding_or_removing_one_member_of_a_large_group_is_a_small_change(api, backend):
    everybody = [f"AUTH_{number:032x}" for number in range(9_999)]
    made = api.post("/registry/gtenants", {"name": "gold", "tenants": everybody}, format="json")
    assert made.status_code == 201, made.content
    assert api.put(f"{HERE}/tenants/AUTH_new").status_code == 200
    assert len(newest(backend).encode()) < 1000
    assert api.delete(f"{HERE}/tenants/AUTH_new").status_code == 204
    assert len(newest(backend).encode()) < 1000
    (raw,) = backend.store.client.xrevrange(backend.store.keys.past, count=1)
    assert sum(map(len, raw[1].values())) < 1000
    assert api.put(HERE, {"tenants": everybody[1:]}, format="json").status_code == 200
    assert len(newest(backend).encode()) < 1000, "named anew as a whole: what differs"
    assert tenants(api) == everybody[1:]


def test_a_group_has_no_more_members_than_it_may(api, gold, monkeypatch):
    monkeypatch.setattr("sluice_controller.catalog.entries.LARGEST_GROUP", 2)
    refused = api.put(f"{HERE}/tenants/AUTH_c")
    assert (refused.status_code, "at most 2" in refused.json()["error"]["message"]) == (409, True)
    assert api.put(f"{HERE}/tenants/AUTH_b").status_code == 200
    assert tenants(api) == ["AUTH_a", "AUTH_b"]


def test_every_member_moves_the_version_of_the_group(api, gold):
    tag = api.get(HERE).headers["ETag"]
    api.put(f"{HERE}/tenants/AUTH_c")
    stale = {"If-Match": tag}
    assert api.delete(f"{HERE}/tenants/AUTH_a", headers=stale).status_code == 412
    assert api.put(f"{HERE}/tenants/AUTH_d", headers=stale).status_code == 412
    assert api.delete(HERE, headers=stale).status_code == 412
    fresh = {"If-Match": api.get(HERE).headers["ETag"]}
    assert api.delete(f"{HERE}/tenants/AUTH_a", headers=fresh).status_code == 204
    assert tenants(api) == ["AUTH_b", "AUTH_c"]


def test_two_who_change_one_group_at_once_do_not_lose_a_member(api, gold, backend, monkeypatch):
    commit = backend.store.commit

    def other_first(draft):
        monkeypatch.setattr(backend.store, "commit", commit)
        assert api.put(f"{HERE}/tenants/AUTH_c").status_code == 200
        return commit(draft)

    monkeypatch.setattr(backend.store, "commit", other_first)
    assert api.put(HERE, {"tenants": ["AUTH_d"]}, format="json").status_code == 409
    assert tenants(api) == ["AUTH_a", "AUTH_b", "AUTH_c"]


def test_a_group_that_is_created_again_has_no_earlier_members(api, gold, backend):
    assert api.delete(HERE).status_code == 204
    assert backend.store.entries() == {}
    assert not any(name.startswith(b"entry/") for name in backend.store.client.hkeys(backend.store.keys.versions))
    assert api.post("/registry/gtenants", {"name": "gold", "tenants": ["AUTH_c"]}, format="json").status_code == 201
    assert tenants(api) == ["AUTH_c"]


def test_a_change_of_members_is_shown_and_can_be_rolled_back(api, gold, backend):
    before = backend.store.head().epoch
    api.put(f"{HERE}/tenants/AUTH_c")
    api.delete(f"{HERE}/tenants/AUTH_a")
    shown = api.get(f"/changes/{before + 1}").json()
    assert [(one["name"], one["how"]) for one in shown["differences"]] == [("tenant_member/gold/AUTH_c", "create")]
    assert api.post(f"/changes/{before}/rollback").status_code == 200
    assert tenants(api) == ["AUTH_a", "AUTH_b"]
    assert api.delete(HERE).status_code == 204
    assert api.post(f"/changes/{before}/rollback").status_code == 200
    assert tenants(api) == ["AUTH_a", "AUTH_b"]


def put(api, document, query=""):
    return api.put(f"/import?{query}", yaml.safe_dump(document), content_type="application/yaml")


def test_a_document_holds_whole_groups_and_import_writes_only_changed_members(api, gold):
    document = yaml.safe_load(api.get("/export").content)
    (entry,) = document["registry"]
    assert (entry["kind"], entry["name"]) == ("group", "gold")
    assert entry["data"] == {"level": "tenant", "members": ["AUTH_a", "AUTH_b"], "labels": {}}
    assert put(api, document, "plan=true").json()["changes"] == []
    entry["data"]["members"] = ["AUTH_c", "AUTH_b"]
    changed = put(api, document)
    assert {(one["name"], one["how"]) for one in changed.json()["changes"]} == {
        ("tenant_member/gold/AUTH_a", "delete"),
        ("tenant_member/gold/AUTH_c", "create"),
    }
    assert tenants(api) == ["AUTH_b", "AUTH_c"]
    assert put(api, {"sluice": 1}).status_code == 200
    assert api.get(HERE).status_code == 404


WRONG = {
    "a slash": ("group", "a/b", {}, "contains `/`"),
    "another level": ("group", "g", {"level": "container"}, "expected `tenant`"),
    "no level": ("container_group", "g", {}, "expected `container`"),
    "a container for a tenant": ("group", "g", {"members": ["AUTH_a/c"]}, "not a tenant"),
    "a tenant for a container": (
        "container_group",
        "g",
        {"level": "container", "members": ["AUTH_a"]},
        "not a container",
    ),
    "half a container": ("container_group", "g", {"level": "container", "members": ["AUTH_a/"]}, "not a container"),
    "nobody": ("group", "g", {"members": [""]}, "not a tenant"),
    "a stranger's label": ("group", "g", {"members": ["a"], "labels": {"b": "x"}}, "not a member"),
    "a member by itself": ("tenant_member", "g/AUTH_a", {}, "expected group"),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_document_with_an_invalid_group_is_refused(api, gold, case):
    kind, name, data, words = WRONG[case]
    refused = put(api, {"sluice": 1, "registry": [{"kind": kind, "name": name, "data": data}]})
    assert refused.status_code == 400, refused.content
    assert words in refused.json()["error"]["message"]
    assert tenants(api) == ["AUTH_a", "AUTH_b"]
