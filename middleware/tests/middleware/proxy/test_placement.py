"""New containers get the storage policy of their account's placement; other requests do not change."""

import pytest
from swift.common.storage_policy import StoragePolicy, StoragePolicyCollection

from sluice_middleware.proxy import placement
from sluice_middleware.proxy.placement import ContainerPlacement, container_account
from sluice_middleware.swift.proxy_api import Request, Response
from sluice_middleware.testing import ProxyStack


class Containers:
    """Swift's responses to PUTs of containers: ``there`` are their policies; a HEAD does not find those in ``late``."""

    def __init__(self):
        self.there = {}
        self.late = set()
        self.puts = []
        self.closed = 0

    def __call__(self, env, start_response):
        request = Request(env)
        if request.method == "HEAD":
            known = request.path_info in self.there and request.path_info not in self.late
            is_account = request.path_info.count("/") == 2
            status = 204 if known or is_account else 404
            return Response(request=request, status=status)(env, start_response)
        named = request.headers.get("X-Storage-Policy")
        self.puts.append((request.path_info, named))
        status = 202 if request.path_info in self.there else 201
        if named and self.there.setdefault(request.path_info, named) != named:
            status = 409
        self.there.setdefault(request.path_info, "gold")
        return _Closing(Response(request=request, status=status, body=b"what Swift says")(env, start_response), self)


class _Closing:
    def __init__(self, body, app):
        self._body, self._app = iter(body), app

    def __iter__(self):
        return self._body

    def close(self):
        self._app.closed += 1


@pytest.fixture
def swift(monkeypatch):
    policies = [StoragePolicy(0, "gold", True), StoragePolicy(1, "ec21"), StoragePolicy(2, "old", is_deprecated=True)]
    monkeypatch.setattr(placement, "POLICIES", StoragePolicyCollection(policies))
    swift = Containers()
    yield swift
    assert swift.closed == len(swift.puts), "an answer was left open"


@pytest.fixture
def put(swift):
    """A PUT through the placements of AUTH_a, AUTH_gone and AUTH_old."""
    app = ContainerPlacement(swift, {"AUTH_a": "ec21", "AUTH_gone": "platinum", "AUTH_old": "old"}.get)

    def ask(path, **headers):
        names = {name.replace("_", "-"): value for name, value in headers.items()}
        response = Request.blank(path, method="PUT", headers=names).get_response(app)
        _ = response.body
        return response

    return ask


@pytest.mark.parametrize(
    ("path", "account"),
    [
        ("/v1/AUTH_a/c", "AUTH_a"),
        ("/v1.0/AUTH_a/c/", "AUTH_a"),
        ("/v1/AUTH_caf\xc3\xa9/c", "AUTH_café"),
        ("/v1/AUTH_a", ""),
        ("/v1/AUTH_a/", ""),
        ("/v1/AUTH_a//o", ""),
        ("/v1/AUTH_a/c/o", ""),
        ("/v1/AUTH_a/c//", ""),
        ("/v1/.expiring_objects/c", ""),
        ("/v1//c", ""),
        ("/v2/AUTH_a/c", ""),
        ("/info", ""),
        ("", ""),
    ],
)
def test_a_container_path_is_recognised(path, account):
    assert container_account({"PATH_INFO": path}) == account


def test_a_new_container_goes_where_its_account_is_placed(swift, put):
    assert put("/v1/AUTH_a/new").status_int == 201
    assert swift.puts == [("/v1/AUTH_a/new", "ec21")]


def test_other_accounts_and_a_policy_of_the_clients_own_are_left_alone(swift, put):
    put("/v1/AUTH_b/new")
    put("/v1/AUTH_a/own", X_Storage_Policy="gold")
    put("/v1/AUTH_a")
    assert swift.puts == [("/v1/AUTH_b/new", None), ("/v1/AUTH_a/own", "gold"), ("/v1/AUTH_a", None)]


def test_a_container_that_is_there_stays_where_it_is(swift, put):
    swift.there["/v1/AUTH_a/c"] = "gold"
    answer = put("/v1/AUTH_a/c")
    assert (answer.status_int, answer.body) == (202, b"what Swift says")
    assert swift.puts == [("/v1/AUTH_a/c", None)]


def test_a_container_made_meanwhile_with_another_policy_is_no_conflict(swift, put):
    swift.there["/v1/AUTH_a/c"] = "gold"
    swift.late.add("/v1/AUTH_a/c")
    assert put("/v1/AUTH_a/c").status_int == 202
    assert swift.puts == [("/v1/AUTH_a/c", "ec21"), ("/v1/AUTH_a/c", None)]


def test_a_conflict_that_the_client_asked_for_is_the_clients(swift, put):
    swift.there["/v1/AUTH_a/c"] = "gold"
    assert put("/v1/AUTH_a/c", X_Storage_Policy="ec21").status_int == 409


@pytest.mark.parametrize(
    ("account", "why"), [("AUTH_gone", "`platinum`, which is not known"), ("AUTH_old", "`old`, which is deprecated")]
)
def test_an_impossible_placement_is_a_503_and_creates_no_container(swift, put, account, why):
    answer = put(f"/v1/{account}/new")
    assert answer.status_int == 503
    assert why in answer.body.decode()
    assert swift.puts == []


def test_through_the_whole_middleware_objects_are_untouched(swift, tmp_path):
    stand = ProxyStack(tmp_path)
    stand.set_policies()
    stand.proxy.context.reader.placements["AUTH_a"] = "ec21"
    stand.swift.missing.add("/v1/AUTH_a/c")
    assert stand("PUT", "/v1/AUTH_a/c").status_int == 201
    assert stand("PUT", "/v1/AUTH_a/c/o", b"text").status_int == 201
    assert stand("POST", "/v1/AUTH_a/c").status_int == 202
    assert [headers.get("X-Storage-Policy") for headers in stand.swift.headers] == ["ec21", None, None]
