"""Objects that earlier code stored, on proxies and on storage nodes, are read byte for byte."""

import base64
import hashlib
import json

import pytest
from swift.common.utils import hash_path
from swift.obj.diskfile import write_metadata
from tests.compatibility.conftest import read
from tests.support.middleware.object_server import StorageNode, swift_conf

from sluice_code.loader import load_class
from sluice_filters.api import Filter
from sluice_middleware.testing import FakeObject, ProxyStack

OBJECTS = read("objects")
CLIENTS = {f"/AUTH_test/{told['container']}/{told['name']}": told for told in read("clients")}
CODE = {name: base64.b64decode(code) for name, code in read("code").items()}


@pytest.fixture(scope="module")
def rot13():
    """The uploaded filter."""
    code = CODE["rot13.py"]
    return load_class(code, hashlib.sha256(code).hexdigest(), Filter)


@pytest.fixture(scope="module")
def node(tmp_path_factory):
    """An object server over the recorded files."""
    folder = tmp_path_factory.mktemp("node")
    key_file = folder / "keys.json"
    key_file.touch(mode=0o600)
    key_file.write_text(json.dumps(read("keys")))
    with swift_conf(folder / "swift"):
        made = StorageNode(folder / "devices", {"sluice_key_file": str(key_file)})
        for name, stored in OBJECTS.items():
            digest = hash_path(*name.strip("/").split("/"))
            place = made.folder / "sda/objects/0" / digest[-3:] / digest
            place.mkdir(parents=True)
            file = place / stored["file"]
            file.write_bytes(base64.b64decode(stored["data"]))
            with file.open("r+b") as opened:
                write_metadata(opened, stored["metadata"])
        yield made


@pytest.mark.parametrize("name", sorted(OBJECTS))
def test_a_recorded_object_comes_back(node, rot13, tmp_path, name):
    told = CLIENTS[name]
    answer = node.request("GET", name=name.strip("/"))
    assert answer.status == "200 OK", (answer.status, dict(answer.headers))
    stand = ProxyStack(tmp_path, rot13)
    headers = {key: value for key, value in answer.headers.items() if key.lower() not in ("content-length", "etag")}
    stand.swift.objects["/v1" + name] = FakeObject(answer.body, headers, answer.headers["Etag"].strip('"'))
    response = stand("GET", "/v1" + name)
    assert response.status_int == 200, response.status
    assert hashlib.sha256(response.body).hexdigest() == told["sha256"]
    assert response.headers["Etag"].strip('"') == told["etag"].strip('"')
    part = stand("GET", "/v1" + name, Range="bytes=100-199")
    assert part.body == response.body[100:200] or (told["size"] == 0 and part.status_int == 416)
    head = stand("HEAD", "/v1" + name)
    assert (head.content_length, head.headers["X-Object-Meta-Colour"]) == (told["size"], "blue")
    assert node.quarantined() == []
