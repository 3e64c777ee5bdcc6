"""Requests of clients at the home of an object."""

import json

import pytest
from swift.common.swob import Request
from tests.support.objects.disks import Disks

from sluice_objects.api import LARGEST_STATE
from sluice_objects.classes import BUILT_IN
from sluice_objects.protocol.home import Home
from sluice_objects.values import pack, unpack
from sluice_objects.writes import etag_of
from sluice_objects_swift.home_app import MSGPACK, HomeApp, RunningObject

PATH = "/0/AUTH_acme/tables/orders"


class Client:
    """Sends requests to one home; each place has disks of its own."""

    def __init__(self):
        self.disks = Disks()
        running = RunningObject(lambda: Home(self.disks, "here:1", lambda: 170_000_000_000_000), BUILT_IN)
        self.app = HomeApp(lambda place: running)

    def send(self, method, body=b"", query="", **headers):
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        path = PATH + (f"?call={query}" if query else "")
        return Request.blank(path, method=method, body=body, headers=named).get_response(self.app)

    def call(self, name, argument=None, **headers):
        answer = self.send("POST", json.dumps(argument).encode(), name, Content_Type="application/json", **headers)
        return answer.status_int, json.loads(answer.body)


@pytest.fixture
def client():
    return Client()


def test_a_plain_object_is_what_was_put(client):
    put = client.send("PUT", b"content", Content_Type="text/plain", X_Object_Meta_Colour="red")
    assert (put.status_int, put.headers["Etag"]) == (201, f'"{etag_of(b"content")}"')
    got = client.send("GET")
    assert (got.body, got.content_type, got.headers["X-Object-Meta-Colour"]) == (b"content", "text/plain", "red")
    assert client.send("GET", Range="bytes=2-4").body == b"nte"
    assert client.send("GET", If_None_Match=f'"{etag_of(b"content")}"').status_int == 304
    head = client.send("HEAD")
    assert (head.body, head.content_length) == (b"", 7)
    assert client.send("DELETE").status_int == 204
    assert client.send("GET").status_int == 404


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"If_Match": f'"{etag_of(b"content")}"'}, 201),
        ({"If_Match": f'"other", "{etag_of(b"content")}"'}, 201),
        ({"If_Match": '"other"'}, 412),
        ({"If_None_Match": "*"}, 412),
        ({"X_Object_Append_At": "7"}, 201),
        ({"X_Object_Append_At": "0"}, 409),
        ({"X_Object_Append_At": "-7"}, 400),
        ({"X_Delete_At": "tomorrow"}, 400),
        ({"X_Object_Append_At": "9" * 5000}, 400),
        ({"X_Object_Sluice_Type": "conter"}, 400),
        ({"X_Object_Sluice_Type": "counter"}, 412),
    ],
)
def test_a_put_has_conditions(client, headers, status):
    client.send("PUT", b"content")
    assert client.send("PUT", b"new", **headers).status_int == status


def test_methods_of_a_typed_object_are_called(client):
    made = client.send("PUT", X_Object_Sluice_Type="counter")
    assert made.headers["X-Object-Sluice-Type"] == "counter"
    status, first = client.call("counter.add", {"amount": 2})
    assert status == 200
    assert client.call("counter.add", {"amount": 3})[1] != first
    assert int(client.send("HEAD").headers["X-Object-Sluice-Version"]) == 3


@pytest.mark.parametrize(
    ("name", "status", "word"),
    [
        ("counter.ad", 404, "add"),
        ("conter.add", 404, "counter"),
        ("map.get", 409, "counter"),
        ("counter", 400, "CLASS.METHOD"),
    ],
)
def test_a_call_that_is_wrong_is_refused_with_what_was_expected(client, name, status, word):
    client.send("PUT", X_Object_Sluice_Type="counter")
    answer = client.send("POST", b"", name)
    assert answer.status_int == status
    assert word in answer.body.decode()


def test_a_call_that_is_sent_twice_has_one_effect(client):
    client.send("PUT", X_Object_Sluice_Type="counter")
    first = client.call("counter.add", {"amount": 2}, X_Sluice_Session="me;1")
    assert client.call("counter.add", {"amount": 2}, X_Sluice_Session="me;1") == first
    client.call("counter.add", {"amount": 2}, X_Sluice_Session="me;2")
    assert client.call("counter.add", {"amount": 2}, X_Sluice_Session="me;1")[0] == 409
    assert client.send("POST", b"", "counter.add", X_Sluice_Session="me;x").status_int == 400


def test_bytes_travel_as_messagepack(client):
    client.send("PUT", X_Object_Sluice_Type="map")
    put = client.send("POST", pack({"key": "k", "value": b"\xfe"}), "map.put", Content_Type=MSGPACK)
    assert put.status_int == 200, put.body
    got = client.send("POST", pack({"key": "k"}), "map.get", Content_Type=MSGPACK)
    assert unpack(got.body)["value"] == b"\xfe"
    shown = client.send("POST", pack({"key": "k"}), "map.get", Content_Type=MSGPACK, Accept="application/json")
    assert json.loads(shown.body)["value"] == {"base64": "/g=="}


@pytest.mark.parametrize(
    ("kind", "body"), [("application/json", b"{"), ("application/json", b"NaN"), (MSGPACK, b"\xc1")]
)
def test_an_argument_that_cannot_be_read_is_400(client, kind, body):
    client.send("PUT", X_Object_Sluice_Type="counter")
    assert client.send("POST", body, "counter.add", Content_Type=kind).status_int == 400


def test_a_body_beyond_the_largest_state_is_413(client):
    assert client.send("PUT", bytes(LARGEST_STATE + 1)).status_int == 413


def test_without_a_majority_the_answer_is_503_and_nothing_is_half_done(client):
    client.send("PUT", b"content")
    client.disks.down = {"a", "b"}
    assert client.send("PUT", b"new").status_int == 503
    assert client.send("GET").status_int == 503
    client.disks.down = {"c"}
    assert client.send("GET").body == b"content"


def test_an_object_that_another_home_has_taken_over_is_307(client):
    client.send("PUT", b"content")
    other = Home(client.disks, "there:2", lambda: 170_000_000_000_000)
    other.take_over()
    answer = client.send("GET")
    assert answer.status_int == 307


def test_a_path_that_is_none_is_400(client):
    assert Request.blank("/x/AUTH_acme").get_response(client.app).status_int == 400
    assert client.send("COPY").status_int == 405
