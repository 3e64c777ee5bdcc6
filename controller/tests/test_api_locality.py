"""``/locality`` and ``/containers``: what is asked of Swift, and every way in which it may answer."""

from dataclasses import replace

import pytest
from django.test import override_settings

from sluice_controller.swift_calls import SwiftDoor
from sluice_controller.testing_swift import fake_swift
from sluice_core.errors import CallerError, PeerError


@pytest.fixture
def swift(config, tmp_path):
    key = tmp_path / "key"
    key.write_text("secret-key\n")
    with fake_swift() as fake:
        made = replace(config, swift_url=fake.url, swift_user="admin:admin", swift_key_file=str(key))
        with override_settings(SLUICE=made):
            fake.config = made
            yield fake


def test_the_devices_of_an_object_are_told_in_the_order_of_the_ring(api, swift):
    found = api.get("/locality/AUTH_a/c/some/object")
    assert found.status_code == 200, found.content
    data = found.json()
    assert (data["object"], data["storage_policy_index"], data["partition"]) == ("some/object", 1, 77)
    assert [(one["number"], one["address"], one["port"], one["device"]) for one in data["locations"]] == [
        (number - 1, f"10.0.0.{number}", 6010, f"sd{number}") for number in (1, 2, 3)
    ]


@pytest.mark.parametrize("name", ["größe", "a b", "a%2Fb?c#d", "line\nbreak", "*?[", "'\"", "../x", "a//b/"])
def test_any_name_reaches_swift_as_it_is(config, swift, name):
    from urllib.parse import quote, unquote

    SwiftDoor(swift.config).locality("AUTH_a", "c c", name)
    (_, path, _) = swift.seen[-1]
    assert path == f"/endpoints/v2/AUTH_a/c%20c/{quote(name)}"
    assert unquote(path).endswith(name)


ANSWERS = {
    "bad name": (400, b"", 400, "cannot have"),
    "no middleware": (404, b"", 503, "list_endpoints"),
    "not let in": (401, b"", 503, "list_endpoints"),
    "no json": (200, b"<html>", 503, "JSON"),
    "another form": (200, b"[]", 503, "form"),
    "half a form": (200, b'{"endpoints": [3]}', 503, "form"),
    "a short path": (200, b'{"endpoints": ["http://h/d"]}', 503, "form"),
    "endless": (200, b" " * ((1 << 20) + 1), 503, "more than"),
}


@pytest.mark.parametrize("name", ANSWERS)
def test_what_swift_answers_otherwise_is_told_as_what_it_is(api, swift, name):
    status, body, expected, words = ANSWERS[name]
    swift.instead["/endpoints"] = (status, body)
    answer = api.get("/locality/AUTH_a/c/o")
    assert answer.status_code == expected
    assert words in answer.json()["error"]["message"]
    assert ("Retry-After" in answer.headers) == (expected == 503)


def test_without_a_swift_it_says_which_option_names_one(api):
    answer = api.get("/locality/AUTH_a/c/o")
    assert (answer.status_code, "swift_url" in answer.json()["error"]["message"]) == (503, True)


def test_a_swift_that_is_away_is_503(config):
    with fake_swift() as gone:
        url = gone.url
    with pytest.raises(PeerError, match="ConnectionRefusedError"):
        SwiftDoor(replace(config, swift_url=url)).locality("a", "c", "o")


def put(api, policy="ec42", status=201, path="/containers/AUTH_a/logs"):
    answer = api.put(path, {"storage_policy": policy}, format="json")
    assert answer.status_code == status, answer.content
    return answer.json()


def test_a_container_is_created_on_the_storage_policy_and_once(api, swift):
    assert put(api) == {"account": "AUTH_a", "container": "logs", "storage_policy": "ec42", "created": True}
    assert swift.containers == {"/v1/AUTH_a/logs": "ec42"}
    assert put(api, status=200)["created"] is False
    assert "another storage policy" in put(api, "Policy-0", 409)["error"]["message"]
    assert swift.containers == {"/v1/AUTH_a/logs": "ec42"}


def test_a_storage_policy_that_is_none_is_named_with_the_nearest(api, swift):
    assert "did you mean `ec42`" in put(api, "ec24", 400)["error"]["message"]
    assert put(api, "EC42-alias")["created"], "as Swift: an alias, in any case"


def test_with_keystone_swift_is_asked_by_the_token_of_whoever_asks(config, swift):
    door = SwiftDoor(replace(swift.config, auth="keystone"))
    assert door.create_container("AUTH_a", "mine", "ec42", "a-token")
    with pytest.raises(CallerError, match="does not let you") as caught:
        door.create_container("AUTH_a", "theirs", "ec42", "another-secret")
    assert caught.value.status == 403
    assert "secret" not in str(caught.value)
    assert not any(path == "/auth/v1.0" for _, path, _ in swift.seen)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"swift_user": ""}, "swift_user"),
        ({"swift_key_file": "/nowhere/key"}, "swift_key_file"),
        ({"swift_user": "somebody:else"}, "no token"),
    ],
)
def test_without_a_user_of_swifts_it_says_so_and_not_the_key(swift, change, words):
    with pytest.raises(PeerError, match=words) as caught:
        SwiftDoor(replace(swift.config, **change)).create_container("a", "c", "ec42", "t")
    assert "secret-key" not in str(caught.value)


@pytest.mark.parametrize("body", [{}, {"storage_policy": ""}, {"storage_policy": 3}, {"policy": "ec42"}, []])
def test_a_body_that_names_no_storage_policy_is_refused(api, swift, body):
    assert api.put("/containers/AUTH_a/c", body, format="json").status_code == 400
    assert api.put("/placements/AUTH_a", body, format="json").status_code == 400
    assert swift.containers == {}
