"""The client with a keystoneauth session of the caller: identity, endpoint and renewed tokens."""

import io

import pytest
from keystoneauth1 import noauth, session, token_endpoint
from keystoneauth1.identity import v3

from sluice_client import ApiError, Client, Retries, Unreachable
from sluice_client.testing import StubController, catalogue

UNAUTHORIZED = {"error": {"code": 401, "title": "Unauthorized", "message": "the token is old", "problems": []}}


@pytest.fixture
def keystone(stub):
    with StubController() as server:
        for token in ("first", "second"):
            server.enqueue(201, catalogue(stub.url), X_Subject_Token=token)
        yield server


@pytest.fixture
def client(keystone):
    auth = v3.Password(
        f"{keystone.url}/v3",
        username="me",
        password="geheim",
        project_name="acme",
        user_domain_id="default",
        project_domain_id="default",
    )
    made = session.Session(auth=auth)
    with Client.from_session(made, retries=Retries(pause=lambda _: None)) as client:
        yield client
    made.session.close()


def test_the_endpoint_is_the_catalogues_and_the_token_the_sessions(client, stub):
    stub.enqueue(200, {"nodes": []})
    assert client.nodes() == []
    assert (stub.requests[0].path, stub.requests[0].headers["X-Auth-Token"]) == ("/nodes", "first")


def test_an_old_token_is_renewed_once(client, stub):
    stub.enqueue(401, UNAUTHORIZED).enqueue(200, {"nodes": []})
    assert client.nodes() == []
    assert [one.headers["X-Auth-Token"] for one in stub.requests] == ["first", "second"]


def test_a_file_is_sent_again_from_its_beginning_with_the_new_token(client, stub):
    stub.enqueue(401, UNAUTHORIZED).enqueue(200, {"keyword": "x"})
    client.upload_filter("x", io.BytesIO(b"code" * 10_000))
    assert [one.body for one in stub.requests] == [b"code" * 10_000] * 2


def test_a_refusal_is_the_controllers(client, stub):
    stub.enqueue(403, {"error": {"code": 403, "title": "Forbidden", "message": "not yours", "problems": []}})
    with pytest.raises(ApiError, match="not yours") as caught:
        client.nodes()
    assert (caught.value.status, caught.value.request_id) == (403, "req-1")


def test_a_broken_connection_is_tried_again_with_a_session_too(client, stub):
    stub.enqueue(200, {"nodes": []}).enqueue(cut=True).enqueue(cut=True).enqueue(200, {"nodes": []})
    assert [client.nodes(), client.nodes()] == [[], []]


def test_a_wrong_password_is_keystones_refusal_and_is_not_repeated(client, keystone):
    keystone.script.clear()
    keystone.enqueue(401, {"error": {"code": 401, "title": "Unauthorized", "message": "wrong"}})
    with pytest.raises(ApiError, match="keystone refuses: wrong") as caught:
        client.nodes()
    assert caught.value.status == 401
    assert "geheim" not in str(caught.value)


def test_a_catalogue_without_the_service_is_named(client, keystone, stub):
    keystone.script.clear()
    answer = catalogue(stub.url)
    answer["token"]["catalog"] = []
    keystone.enqueue(201, answer, X_Subject_Token="t")
    with pytest.raises(Unreachable, match="service `sluice` of the service catalogue"):
        client.nodes()


def test_an_endpoint_that_is_named_goes_before_the_catalogue(stub):
    stub.enqueue(200, {"nodes": []})
    made = session.Session(auth=token_endpoint.Token("http://127.0.0.1:1", "given"))
    with Client.from_session(made, endpoint=stub.url + "/") as client:
        assert client.nodes() == []
    assert stub.requests[0].headers["X-Auth-Token"] == "given"
    made.session.close()


def test_an_unreachable_controller_is_named_with_a_session_too(nobody):
    made = session.Session(auth=noauth.NoAuth(endpoint=nobody))
    client = Client.from_session(made, timeout=1.0, retries=Retries(tries=1))
    with pytest.raises(Unreachable, match=r"cannot be reached: \[Errno 111\] Connection refused$") as caught:
        client.nodes()
    assert caught.value.passing
    made.session.close()
