"""``/locality`` and ``/containers``: the requests to Swift, and every kind of its answers."""

import gzip
import json
import struct
from dataclasses import replace

import pytest
from django.test import override_settings
from tests.support.controller.swift import fake_swift

from sluice_controller.registry.swift_client import SwiftClient
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

    SwiftClient(swift.config).locality("AUTH_a", "c c", name)
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
        SwiftClient(replace(config, swift_url=url)).locality("a", "c", "o")


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


def test_an_unknown_storage_policy_is_named_with_the_near_miss(api, swift):
    assert "did you mean `ec42`" in put(api, "ec24", 400)["error"]["message"]
    assert put(api, "EC42-alias")["created"], "as Swift: an alias, in any case"


def test_with_keystone_swift_is_asked_by_the_token_of_whoever_asks(config, swift):
    door = SwiftClient(replace(swift.config, auth="keystone"))
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
        SwiftClient(replace(swift.config, **change)).create_container("a", "c", "ec42", "t")
    assert "secret-key" not in str(caught.value)


@pytest.mark.parametrize("body", [{}, {"storage_policy": ""}, {"storage_policy": 3}, {"policy": "ec42"}, []])
def test_a_body_that_names_no_storage_policy_is_refused(api, swift, body):
    assert api.put("/containers/AUTH_a/c", body, format="json").status_code == 400
    assert api.put("/placements/AUTH_a", body, format="json").status_code == 400
    assert swift.containers == {}


def ring(version, devices):
    head = {"devs": devices, "part_shift": 22, "replica_count": 3}
    if version == 1:
        text = json.dumps(head).encode()
        return b"R1NG\0\1" + struct.pack("!I", len(text)) + text + bytes(64)
    blobs = [json.dumps({"part_shift": 22}).encode(), json.dumps(devices).encode()]
    return b"R1NG\0\2" + b"".join(struct.pack("!Q", len(one)) + one for one in blobs) + bytes(64)


SWIFT_CONF = """\
[swift-hash]
swift_hash_path_suffix = 50%off

[storage-policy:0]
name = gold
default = yes

[storage-policy:1]
name = ec21
policy_type = erasure_coding
ec_type = liberasurecode_rs_vand
ec_num_data_fragments = 1
ec_num_parity_fragments = 1
ec_duplication_factor = 2
"""


@pytest.fixture
def files(swift, tmp_path):
    """Files like those in /etc/swift: a policy with two different fragments, each twice, and one missing device."""
    folder = tmp_path / "swift"
    folder.mkdir()
    (folder / "swift.conf").write_text(SWIFT_CONF)
    made = [
        {"ip": f"10.0.0.{node}", "port": 6010, "device": f"sd{node}", "region": 1, "zone": node, "id": node}
        for node in (1, 2)
    ]
    made[0] |= {"replication_ip": "10.9.0.1", "replication_port": 6011}
    (folder / "object-1.ring.gz").write_bytes(gzip.compress(ring(1, [None, *made])))
    with override_settings(SLUICE=replace(swift.config, swift_dir=str(folder))):
        yield folder


@pytest.mark.parametrize("version", [1, 2])
def test_swifts_files_tell_fragments_regions_zones_and_replication_addresses(api, files, version):
    with gzip.open(files / "object-1.ring.gz") as file:
        head = json.loads(file.read()[10:].rstrip(b"\0"))
    (files / "object-1.ring.gz").write_bytes(gzip.compress(ring(version, head["devs"])))
    data = api.get("/locality/AUTH_a/c/o").json()
    assert (data["storage_policy"], data["type"], data["needed"]) == ("ec21", "erasure_coding", 1)
    told = ("number", "fragment", "region", "zone", "replication_address", "replication_port")
    assert [tuple(one[name] for name in told) for one in data["locations"]] == [
        (0, 0, 1, 1, "10.9.0.1", 6011),
        (1, 1, 1, 2, "10.0.0.2", 6010),
        (2, 0, None, None, None, None),
    ]


def test_of_replicas_there_are_no_fragments(api, swift, files):
    (files / "object-1.ring.gz").rename(files / "object.ring.gz")
    found = [f"http://10.0.0.{node}:6010/sd{node}/77/a/c/o" for node in (1, 2)]
    swift.instead["/endpoints"] = (200, json.dumps({"endpoints": found, "headers": {}}).encode())
    data = api.get("/locality/AUTH_a/c/o").json()
    assert (data["storage_policy"], data["type"], data["needed"]) == ("gold", "replication", 1)
    assert [(one["fragment"], one["zone"]) for one in data["locations"]] == [(None, 1), (None, 2)]
    (files / "swift.conf").write_text("[swift-hash]\n")
    assert api.get("/locality/AUTH_a/c/o").json()["storage_policy"] == "Policy-0"


def test_without_swifts_files_the_rest_is_told(api, swift):
    data = api.get("/locality/AUTH_a/c/o").json()
    assert (data["storage_policy"], data["type"], data["needed"]) == (None, None, None)
    assert {one["zone"] for one in data["locations"]} == {None}


RING, CONF = "object-1.ring.gz", "swift.conf"
#: The fault → the file, and its contents; None: it is missing.
BROKEN = {
    "no ring": (RING, None),
    "no gzip": (RING, b"R1NG"),
    "half a ring": (RING, gzip.compress(ring(1, [])[:20])),
    "cut off": (RING, gzip.compress(ring(1, []))[:30]),
    "damaged": (RING, gzip.compress(ring(1, []))[:10] + b"\xff" * 40),
    "a later version": (RING, gzip.compress(b"R1NG\0\3" + bytes(9))),
    "endless": (RING, gzip.compress(b"R1NG\0\1" + b"\xff" * 9)),
    "no device": (RING, gzip.compress(ring(1, [{"ip": "x"}]))),
    "no list": (RING, gzip.compress(ring(1, 7))),
    "no swift.conf": (CONF, None),
    "no such policy": (CONF, b"[storage-policy:0]\nname = gold\n"),
    "no number": (CONF, SWIFT_CONF.replace("data_fragments = 1", "data_fragments = x").encode()),
    "no text": (CONF, b"\xff\xfe"),
}


@pytest.mark.parametrize("fault", BROKEN)
def test_files_that_cannot_be_read_are_named(api, files, fault):
    name, content = BROKEN[fault]
    (files / name).unlink()
    if content is not None:
        (files / name).write_bytes(content)
    answer = api.get("/locality/AUTH_a/c/o")
    assert answer.status_code == 503, answer.content
    assert str(files / name) in answer.json()["error"]["message"]
