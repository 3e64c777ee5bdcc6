"""Filters that are installed with the software: ``/filters/{keyword}`` shows each listed one, and changes none."""

from dataclasses import replace

import pytest

from sluice_filters.registry import BUILT_IN

SCRAMBLE = {"keyword": "scramble", "environment": "wasm", "language": "wasm", "reverse": True}


def listed(api):
    return {one["keyword"]: one for one in api.get("/filters?limit=1000").json()["filters"]}


def test_every_listed_filter_is_shown_as_it_is_listed(api):
    known = listed(api)
    assert {one.info.keyword for one in BUILT_IN} <= known.keys()
    for keyword, line in known.items():
        shown = api.get(f"/filters/{keyword}")
        assert (shown.status_code, shown.headers["Allow"]) == (200, "GET, HEAD"), shown.content
        body = shown.json()
        assert (body["installed"], body["rollout"], body["sha256"], body["revisions"]) == (True, None, "", [])
        assert {name: body[name] for name in ("keyword", "environment", "help", "parameters")} == {
            name: line[name] for name in ("keyword", "environment", "help", "parameters")
        }
        assert (body["reverse"], body["revision"]) == (line["reversible"], line["version"])
        assert body["capabilities"] == {name: line[name] for name in body["capabilities"]}
        assert {"places", "default_place", "stage", "on_put", "on_get"} <= body["capabilities"].keys()
        head = api.head(f"/filters/{keyword}")
        assert (head.status_code, head.content) == (200, b"")


CHANGES = [
    ("put", "", {"help": "other words"}, "GET, HEAD"),
    ("delete", "", None, "GET, HEAD"),
    ("put", "/data", b"code", "GET, HEAD"),
    ("post", "/rollback", {}, ""),
]


@pytest.mark.parametrize(("method", "path", "body", "allowed"), CHANGES)
def test_a_change_of_an_installed_filter_is_405_with_the_reason(api, backend, code_swift, method, path, body, allowed):
    epoch, how = backend.store.head().epoch, {"format": "json"}
    if isinstance(body, bytes):
        how = {"content_type": "application/octet-stream"}
    refused = getattr(api, method)(f"/filters/compression{path}", body, **how)
    assert refused.status_code == 405, refused.content
    assert refused.headers["Allow"] == allowed
    assert "`compression` is installed" in refused.json()["error"]["message"]
    assert (backend.store.head().epoch, backend.store.upload("compression"), code_swift.objects) == (epoch, None, {})


def test_an_installed_filter_has_no_code_to_download(api, code_swift):
    answer = api.get("/filters/compression/data")
    assert (answer.status_code, answer.headers["Allow"]) == (404, "GET, HEAD")


@pytest.mark.parametrize("keyword", ["bandwidth", "nothing", "Compression"])
def test_what_is_not_listed_is_not_found(api, keyword):
    assert keyword not in listed(api)
    assert api.get(f"/filters/{keyword}").status_code == 404
    assert api.put(f"/filters/{keyword}", {"help": "x"}, format="json").status_code == 404
    assert api.delete(f"/filters/{keyword}").status_code == 404


def test_a_registration_whose_keyword_is_installed_later_can_still_be_deleted(api, backend):
    assert api.post("/filters", SCRAMBLE, format="json").status_code == 201
    noop = backend.native.actions["noop"]
    actions = {**backend.native.actions, "scramble": replace(noop, keyword="scramble")}
    object.__setattr__(backend, "native", replace(backend.native, actions=actions))
    assert (listed(api)["scramble"]["environment"], api.get("/filters/scramble").json()["installed"]) == (
        "native",
        False,
    )
    assert api.delete("/filters/scramble").status_code == 204
    assert api.get("/filters/scramble").json()["installed"] is True
    assert api.delete("/filters/scramble").status_code == 405


@pytest.mark.parametrize("tenant", ["compression", "noop", "scramble", "data", "deploy", "undeploy", "rollback"])
def test_a_tenant_named_like_a_filter_or_a_word_of_the_path_is_reachable(api, tenant):
    assert api.post("/filters", SCRAMBLE, format="json").status_code == 201
    for target in (tenant, f"{tenant}/{tenant}", f"{tenant}/data", f"AUTH_a/{tenant}/{tenant}"):
        done = api.put(f"/filters/{target}/deploy/noop")
        assert done.status_code == 200, done.content
        here = api.get(f"/filters/{target}/deploy").json()
        assert (here["target"], [one["keyword"] for one in here["filters"]]) == (target, ["noop"])
        assert api.put(f"/filters/{target}/undeploy/noop").json()["filters"] == []
    assert api.get("/filters/noop").json()["installed"] is True
    assert api.get("/filters/scramble").json()["installed"] is False


def test_no_installed_filter_is_hidden_by_a_word_of_the_path():
    from sluice_controller.code.filters import RESERVED

    assert not RESERVED & {one.info.keyword for one in BUILT_IN}
