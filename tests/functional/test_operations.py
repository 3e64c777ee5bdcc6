"""Operations on a whole cluster: switching off, explaining, going back, and the locality of data.

Tests docs/admin/operate.md.
"""

import json
from urllib.parse import urlsplit

import pytest

from sluice_aio.base.setup import EC21
from sluice_aio.base.swift_http import SwiftHttp


@pytest.fixture(scope="module")
def call(cluster):
    """One call of the API; returns the decoded body."""

    def ask(method, path, data=None, kind="application/json", status=(200, 201)):
        body = data if isinstance(data, bytes) else b"" if data is None else json.dumps(data).encode()
        answer = SwiftHttp(cluster.api_url).raw(
            method, path, {"X-Auth-Token": cluster.token, "Content-Type": kind}, body
        )
        assert answer.status in status, answer.body
        return json.loads(answer.body) if answer.headers["content-type"] == "application/json" else answer.body

    return ask


def deciding(call, path):
    return [one["decided_by"] for one in call("GET", f"/effective?target={path}&size=5")["kinds"]]


def test_a_policy_is_switched_off_and_gone_back_to_on_every_node(call, policies):
    made = policies("FOR CONTAINER AUTH_test/switched DO SET compression")
    epoch = call("GET", "/changes?limit=1")["changes"][0]["epoch"]
    assert deciding(call, "AUTH_test/switched/o") == [[made["id"]]]
    off = call("PUT", f"/policies/{made['id']}?wait=15", {"enabled": False})
    assert off["enforced"]["nodes"] == off["enforced"]["total"] >= 1, "every node took it back"
    assert deciding(call, "AUTH_test/switched/o") == [[]]
    back = call("POST", f"/changes/{epoch}/rollback?wait=15")
    assert [one["name"] for one in back["changes"]] == [made["id"]]
    shown = call("GET", f"/policies/{made['id']}")
    assert (shown["state"], shown["enforced"]["waiting"]) == ("active", [])


def test_one_call_says_whether_all_is_well(call, policies):
    policies("FOR TENANT AUTH_test WHEN PUTS_SEC > 1000 DO SET noop TRANSIENT")
    found = call("GET", "/overview")
    assert found["policies"]["total"] == call("GET", "/policies?limit=1")["total"] >= 1
    assert found["policies"]["refused"] == 0
    assert found["cluster"]["nodes"]["ok"] == found["cluster"]["nodes"]["total"] == len(call("GET", "/nodes")["nodes"])
    assert found["cluster"]["hosts"]["alive"] >= 1
    assert set(found["cluster"]["dependencies"].values()) == {"ok"}


def test_what_was_exported_is_what_stands(call, policies):
    policies("FOR TENANT AUTH_test WHEN PUTS_SEC > 1000 DO SET noop TRANSIENT")
    document = call("GET", "/export")
    assert call("PUT", "/import?plan=true", document, "application/yaml")["changes"] == []


def test_an_object_can_be_read_on_every_device_that_is_named(call, swift):
    swift.request("PUT", "located")
    assert swift.request("PUT", "located/o", b"here").status == 201
    found = call("GET", "/locality/AUTH_test/located/o")
    assert len(found["locations"]) > 1
    for one in found["locations"]:
        headers = {"X-Backend-Storage-Policy-Index": str(found["storage_policy_index"])}
        answer = SwiftHttp(one["url"]).raw("GET", urlsplit(one["url"]).path, headers)
        assert (answer.status, answer.body) == (200, b"here"), one
    assert found["needed"] == 1
    assert all(one["region"] and one["zone"] and one["replication_address"] for one in found["locations"]), found


def test_of_an_erasure_coded_object_the_fragments_are_told(call, swift):
    policies = {one["name"] for one in json.loads(swift.raw("GET", "/info", {}).body)["swift"]["policies"]}
    assert EC21 in policies
    call("PUT", "/containers/AUTH_test/coded", {"storage_policy": EC21})
    assert swift.request("PUT", "coded/o", b"in pieces").status == 201
    found = call("GET", "/locality/AUTH_test/coded/o")
    assert (found["storage_policy"], found["type"], found["needed"]) == (EC21, "erasure_coding", 2)
    assert [one["fragment"] for one in found["locations"]] == [0, 1, 2]
    for one in found["locations"]:
        headers = {"X-Backend-Storage-Policy-Index": str(found["storage_policy_index"])}
        answer = SwiftHttp(one["url"]).raw("GET", urlsplit(one["url"]).path, headers)
        assert answer.headers["x-object-sysmeta-ec-frag-index"] == str(one["fragment"])


def test_a_container_is_made_on_the_storage_policy_that_is_named(call, swift):
    names = [one["name"] for one in json.loads(swift.raw("GET", "/info", {}).body)["swift"]["policies"]]
    assert len(names) > 1
    for name in names:
        container = f"on-{name.lower()}"
        assert call("PUT", f"/containers/AUTH_test/{container}", {"storage_policy": name})["created"]
        assert swift.request("HEAD", container).headers["x-storage-policy"] == name
    call("PUT", f"/containers/AUTH_test/on-{names[0].lower()}", {"storage_policy": names[1]}, status=(409,))
