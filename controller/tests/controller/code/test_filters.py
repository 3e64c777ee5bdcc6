"""Filters registered at run time; their code goes to a small Swift of the test's own."""

from __future__ import annotations

import hashlib
from dataclasses import replace

import pytest
from tests.support.controller.swift_code_store import fake_code_swift

from sluice_code.swift_code_store import SwiftCodeStore, SwiftCodeStoreSettings
from sluice_core.errors import PeerError

CODE = b"\0asm" + bytes(range(256)) * 100
SHA = hashlib.sha256(CODE).hexdigest()
SCRAMBLE = {
    "keyword": "scramble",
    "environment": "wasm",
    "language": "wasm",
    "reverse": True,
    "capabilities": {"changes_length": False, "stage": 450},
    "parameters": [{"name": "key", "type": "str", "help": "what to mix in", "default": "x"}],
    "help": "not a cipher",
}


@pytest.fixture
def swift():
    with fake_code_swift() as server:
        yield server


@pytest.fixture
def code_store(swift, backend):
    made = swift.code_store()
    object.__setattr__(backend, "code", made)
    return made


def upload(api, code=CODE, path="/filters/scramble/data", **headers):
    return api.put(path, code, content_type="application/octet-stream", headers=headers)


@pytest.fixture
def registered(api):
    answer = api.post("/filters", SCRAMBLE, format="json")
    assert answer.status_code == 201, answer.content
    return answer


def test_a_registration_is_shown_and_not_usable_before_its_code_comes(api, registered, code_store):
    assert registered.headers["Location"] == "/filters/scramble"
    shown = api.get("/filters/scramble")
    assert shown.json() == registered.json()
    assert shown.headers["ETag"] == registered.headers["ETag"]
    assert shown.json()["sha256"] == ""
    assert shown.json()["capabilities"] == SCRAMBLE["capabilities"]
    refused = api.post("/policies", {"policy": "FOR TENANT AUTH_a DO SET scramble"}, format="json")
    assert refused.status_code == 400
    assert api.get("/filters/scramble/data").status_code == 404


def test_a_filter_with_code_can_be_used_in_sentences(api, registered, code_store, swift):
    answer = upload(api, **{"X-Content-Sha256": SHA})
    assert answer.status_code == 200, answer.content
    assert (answer.json()["sha256"], answer.json()["size"], answer.json()["revision"]) == (SHA, len(CODE), 1)
    assert swift.objects[f"/v1/AUTH_s/sluice-code/{SHA}"] == CODE
    given = api.get("/filters/scramble/data")
    assert b"".join(given.streaming_content) == CODE
    assert given.headers["X-Content-Sha256"] == SHA
    listed = {one["keyword"]: one for one in api.get("/filters").json()["filters"]}
    assert (listed["scramble"]["environment"], listed["scramble"]["stage"]) == ("wasm", 450)
    made = api.post("/policies", {"policy": "FOR TENANT AUTH_a DO SET scramble WITH key=y"}, format="json")
    assert made.status_code == 201, made.content
    used = api.delete("/filters/scramble?force=true")
    assert used.status_code == 409
    assert made.json()["id"] in used.json()["error"]["message"]
    api.delete(f"/policies/{made.json()['id']}")
    assert api.delete("/filters/scramble").status_code == 409
    assert api.delete("/filters/scramble?force=true").status_code == 204
    assert api.get("/filters/scramble").status_code == 404


def test_a_wrong_digest_stores_nothing(api, registered, code_store, swift):
    refused = upload(api, **{"X-Content-Sha256": "0" * 64})
    assert refused.status_code == 422
    assert SHA in refused.json()["error"]["message"]
    assert not [path for path in swift.objects if path.endswith(SHA)]
    assert api.get("/filters/scramble").json()["sha256"] == ""
    assert upload(api, **{"X-Content-Sha256": "short"}).status_code == 400
    assert upload(api, b"").status_code == 400


def test_other_code_is_another_revision_and_the_earlier_one_is_kept_for_objects(api, backend, registered, code_store):
    upload(api)
    again = upload(api)
    assert again.json()["revision"] == 1
    second = upload(api, CODE + b"2")
    assert second.json()["revision"] == 2
    assert backend.store.upload("scramble").earlier == (SHA,)
    back = upload(api, CODE)
    assert (back.json()["revision"], back.json()["sha256"]) == (3, SHA)
    assert backend.store.upload("scramble").earlier == (hashlib.sha256(CODE + b"2").hexdigest(),)


def test_an_update_honours_if_match_and_keeps_what_it_does_not_name(api, registered, code_store):
    named = {"If-Match": registered["ETag"]}
    changed = api.put("/filters/scramble", {"help": "new words"}, format="json", headers=named)
    assert changed.status_code == 200, changed.content
    assert changed.json() == {**registered.json(), "help": "new words"}
    stale = api.put("/filters/scramble", {"help": "x"}, format="json", headers=named)
    assert stale.status_code == 412
    assert api.put("/filters/scramble", {"keyword": "other"}, format="json").status_code == 400
    upload(api)
    assert api.put("/filters/scramble", {"reverse": False}, format="json").status_code == 409


@pytest.mark.parametrize(
    ("change", "status", "word"),
    [
        ({"environment": "native"}, 400, "capabilities"),
        ({"environment": "jvm"}, 400, "storlet"),
        ({"environment": 3}, 400, "text"),
        ({"keyword": ""}, 400, "keyword"),
        ({"keyword": "deploy"}, 400, "deploy"),
        ({"keyword": "Loud"}, 400, "lower"),
        ({"keyword": "compression"}, 409, "compression"),
        ({"reverse": "yes"}, 400, "reverse"),
        ({"capabilities": []}, 400, "capabilities"),
        ({"capabilities": {"stagee": 1}}, 400, "stagee"),
        ({"parameters": {"name": "x"}}, 400, "parameters"),
        ({"parameters": [{"nam": "x"}]}, 400, "nam"),
        ({"colour": "red"}, 400, "colour"),
    ],
)
def test_errors_of_a_registration_are_named(api, code_store, change, status, word):
    refused = api.post("/filters", {**SCRAMBLE, **change}, format="json")
    assert refused.status_code == status, refused.content
    assert word in refused.json()["error"]["message"]


def test_registering_twice_and_what_is_not_there(api, registered, code_store):
    assert api.post("/filters", SCRAMBLE, format="json").status_code == 409
    for answer in (
        api.get("/filters/nothing"),
        api.delete("/filters/nothing"),
        upload(api, path="/filters/nothing/data"),
    ):
        assert answer.status_code == 404


def test_without_a_place_for_code_the_answer_says_which_options_name_one(api, registered):
    refused = upload(api)
    assert refused.status_code == 503
    assert "code_auth_url" in refused.json()["error"]["message"]


def test_code_larger_than_the_limit_is_refused(api, backend, registered, code_store, swift):
    object.__setattr__(backend, "config", replace(backend.config, code_limit=len(CODE) - 1))
    refused = upload(api)
    assert refused.status_code == 413
    assert swift.objects == {}


def test_a_swift_that_is_away_is_a_peer_error(swift):
    code_store = SwiftCodeStore(SwiftCodeStoreSettings("http://127.0.0.1:9/auth/v1.0", "s", "k", "c"))
    with pytest.raises(PeerError):
        code_store.get(SHA)


def test_a_token_that_is_no_longer_good_is_renewed(code_store, swift):
    code_store.put(SHA, [CODE], len(CODE))
    swift.token += 1
    with code_store.get(SHA) as pieces:
        assert b"".join(pieces) == CODE
