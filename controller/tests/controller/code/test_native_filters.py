"""Uploaded native filters: tried in a child before they are stored, rolled back, for administrators."""

from __future__ import annotations

import hashlib
import threading

import pytest

from sluice_code.swift_code_store import SwiftCodeStore

INVERT = """
from sluice_core.describe import FILTER, ActionInfo, Parameter
from sluice_filters.basic.bytemap import ByteMap


class Invert(ByteMap):
    info = ActionInfo(
        keyword="invert",
        kind=FILTER,
        help="store each byte XOR a constant",
        parameters=(Parameter("strength", "int", "how much", default=1, minimum=1, maximum=9),),
        stage=450,
        changes_content=True,
        reversible=True,
    )

    def table(self):
        return bytes(value ^ KEY for value in range(256))

    def said(self):
        return {"key": KEY}

    def table_of(self, record):
        return bytes(value ^ record["key"] for value in range(256))


KEY = 255
"""
SECOND = INVERT.replace("KEY = 255", "KEY = 129")
PLAIN = """
from sluice_core.describe import FILTER, ActionInfo
from sluice_filters.api import Filter


class Invert(Filter):
    info = ActionInfo("invert", FILTER, "change nothing at all", on_put=False, on_get=True)
"""
#: Reads only what it has written itself.
FORGETFUL = INVERT.replace('record["key"] for', "7 for").replace("KEY = 255", "KEY = 7")
PATH = "/filters/invert/data"


def digest(code):
    return hashlib.sha256(code.encode()).hexdigest()


@pytest.fixture
def registered(api, code_swift):
    answer = api.post("/filters", {"keyword": "invert", "environment": "native"}, format="json")
    assert answer.status_code == 201, answer.content
    return answer.json()


def test_its_code_says_what_a_native_filter_is(api, registered, send_code, code_swift):
    assert (registered["sha256"], registered["capabilities"], registered["language"]) == ("", {}, "python")
    assert "invert" not in {one["keyword"] for one in api.get("/filters").json()["filters"]}
    made = send_code(PATH, INVERT).json()
    assert (made["main"], made["reverse"], made["help"]) == ("Invert", True, "store each byte XOR a constant")
    assert made["capabilities"]["stage"] == 450
    assert [one["name"] for one in made["parameters"]] == ["strength"]
    assert (made["revision"], made["revisions"], made["sha256"]) == (1, [], digest(INVERT))
    assert made["rollout"] == {"total": 0, "nodes": 0, "refused": [], "waiting": [], "away": []}
    assert api.get("/filters/invert").json() == made
    assert code_swift.objects[f"/v1/AUTH_s/sluice-code/{digest(INVERT)}"] == INVERT.encode()
    (listed,) = [one for one in api.get("/filters").json()["filters"] if one["keyword"] == "invert"]
    assert (listed["environment"], listed["version"], listed["reversible"]) == ("native", 1, True)
    policy = {"policy": "FOR TENANT AUTH_a DO SET invert WITH strength=3"}
    assert api.post("/policies", policy, format="json").status_code == 201
    assert api.delete("/filters/invert?force=true").status_code == 409


def test_a_new_revision_must_read_what_the_earlier_ones_have_stored(api, registered, send_code):
    send_code(PATH, INVERT)
    second = send_code(PATH, SECOND).json()
    assert second["revision"] == 2
    (first,) = second["revisions"]
    assert first["uploaded_at"] <= second["uploaded_at"]
    code = {"revision": 1, "sha256": digest(INVERT), "size": len(INVERT), "main": "Invert"}
    assert first == {**code, "uploaded_by": second["uploaded_by"], "uploaded_at": first["uploaded_at"]}
    refused = send_code(PATH, FORGETFUL, 400).json()["error"]["message"]
    assert refused == "filter `invert`: it gives other bytes back than revision 2 was given"
    assert api.get("/filters/invert").json() == second


def test_rolling_back_is_a_new_revision_with_the_old_code(api, backend, registered, send_code):
    send_code(PATH, INVERT)
    send_code(PATH, SECOND)
    back = api.post("/filters/invert/rollback", {}, format="json")
    assert back.status_code == 200, back.content
    assert (back.json()["revision"], back.json()["sha256"]) == (3, digest(INVERT))
    assert [one["revision"] for one in back.json()["revisions"]] == [2, 1]
    assert backend.store.upload("invert").earlier == (digest(SECOND),)
    again = api.post("/filters/invert/rollback", {"revision": 2}, format="json").json()
    assert (again["revision"], again["sha256"]) == (4, digest(SECOND))
    shown = api.head("/filters/invert/data")
    assert (shown.headers["X-Content-Sha256"], shown.headers["Content-Length"]) == (digest(SECOND), str(len(SECOND)))


@pytest.mark.parametrize(
    ("body", "status", "word"),
    [
        ({"revision": 7}, 404, "kept are none"),
        ({}, 404, "no earlier revision"),
        ({"revision": "1"}, 400, "whole number"),
        ({"revision": True}, 400, "whole number"),
        ({"revision": 0}, 400, "whole number"),
        ({"version": 1}, 400, "revision"),
        ([], 400, "no object"),
    ],
)
def test_a_roll_back_to_nowhere_is_refused(api, registered, send_code, body, status, word):
    send_code(PATH, INVERT)
    refused = api.post("/filters/invert/rollback", body, format="json")
    assert refused.status_code == status, refused.content
    assert word in refused.json()["error"]["message"]


BROKEN = {
    "no Python": ("def broken(:\n    pass", "line 1"),
    "imports what nodes do not have": (f"import requests\n{INVERT}", "line 1 imports `requests`"),
    "imports what is Swift's": (f"import swift.common\n{INVERT}", "`swift.common`"),
    "no class": ("KEY = 1", "no subclass of Filter"),
    "another class": ("class Invert:\n    pass", "no subclass of Filter"),
    "two classes": (INVERT + "\nclass Other(Invert):\n    pass\n", "several subclasses"),
    "another keyword": (INVERT.replace('"invert"', '"revert"'), "`revert`, expected `invert`"),
    "it raises when it is loaded": (INVERT + "\n1 / 0\n", "ZeroDivisionError"),
    "it ends the process": (INVERT + "\nimport os\nos._exit(3)\n", "status 3"),
    "a broken contract": (INVERT.replace('record["key"] for', "1 for"), ""),
    "bytes that are no text": (b"\xff\xfe\x00", "no Python"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_broken_code_is_refused_with_the_reason_and_nothing_is_stored(api, registered, send_code, code_swift, name):
    code, word = BROKEN[name]
    refused = send_code(PATH, code, 400).json()["error"]["message"]
    assert word in refused
    assert code_swift.objects == {}
    assert api.get("/filters/invert").json() == registered


def test_of_several_classes_one_is_named_and_stays(api, registered, send_code):
    both = INVERT + "\nclass Other(Invert):\n    pass\n"
    assert send_code(f"{PATH}?main=Other", both).json()["main"] == "Other"
    assert send_code(PATH, both + "# more\n").json()["main"] == "Other", "the class that has been"
    assert send_code(f"{PATH}?main=Invert", both + "# more\n").json()["revision"] == 3
    assert "`Nothing`" in send_code(f"{PATH}?main=Nothing", both, 400).json()["error"]["message"]
    assert send_code(f"{PATH}?main=a+b", both, 400)


def test_what_native_code_declares_cannot_be_registered(api, registered, send_code):
    for name, value in (("reverse", True), ("capabilities", {}), ("parameters", []), ("help", "x")):
        refused = api.put("/filters/invert", {name: value}, format="json")
        assert refused.status_code == 400
        assert f"`{name}`" in refused.json()["error"]["message"]
    send_code(PATH, INVERT)
    assert api.put("/filters/invert", {"self_service": True}, format="json").json()["self_service"] is True
    assert api.put("/filters/invert", {"environment": "wasm", "language": "wasm"}, format="json").status_code == 409
    assert api.put("/filters/invert", {"main": "Other"}, format="json").status_code == 409


@pytest.mark.parametrize(
    ("body", "status", "word"),
    [
        ({"keyword": "compression"}, 409, "keyword of the language"),
        ({"keyword": "Loud"}, 400, "lower case"),
        ({"keyword": "a/b"}, 400, "lower case"),
        ({"keyword": "a", "language": "java"}, 400, "python"),
        ({"keyword": "tight"}, 409, "alias"),
    ],
)
def test_words_that_are_taken_or_none_are_refused(api, body, status, word):
    alias = {"name": "tight", "of": "filter", "text": "compression"}
    assert api.post("/registry/aliases", alias, format="json").status_code == 201
    refused = api.post("/filters", {"environment": "native", **body}, format="json")
    assert refused.status_code == status, refused.content
    assert word in refused.json()["error"]["message"]


def test_the_same_code_again_changes_nothing_and_a_stale_version_is_refused(api, backend, registered, send_code):
    made = send_code(PATH, INVERT)
    epoch = backend.store.head().epoch
    assert send_code(PATH, INVERT).headers["ETag"] == made.headers["ETag"]
    assert backend.store.head().epoch == epoch
    send_code(PATH, SECOND, **{"If-Match": made.headers["ETag"]})
    send_code(PATH, INVERT, 412, **{"If-Match": made.headers["ETag"]})


def test_a_reversible_filter_stays_one(api, registered, send_code):
    send_code(PATH, INVERT)
    refused = send_code(PATH, PLAIN, 400)
    assert "not reversible" in refused.json()["error"]["message"]


def test_without_a_place_to_try_it_the_answer_is_503(api, backend, registered, send_code, code_swift):
    object.__setattr__(backend, "waiters", threading.BoundedSemaphore(1))
    with backend.waiters:
        refused = send_code(PATH, INVERT, 503)
    assert refused.headers["Retry-After"]
    assert code_swift.objects == {}
    send_code(PATH, INVERT)


def test_native_source_has_a_size_limit(api, registered, send_code, code_swift):
    send_code(PATH, INVERT + "#" * (1 << 20), 413)
    assert code_swift.objects == {}


def test_without_an_earlier_revision_in_swift_new_code_is_not_judged(api, registered, send_code, code_swift):
    send_code(PATH, INVERT)
    code_swift.objects.clear()
    refused = send_code(PATH, SECOND, 503).json()["error"]["message"]
    assert "revision 1" in refused


def test_isolated_filters_go_back_as_well_and_keep_their_description(api, send_code):
    scramble = {"keyword": "scramble", "environment": "wasm", "language": "wasm", "reverse": True, "help": "first"}
    assert api.post("/filters", scramble, format="json").status_code == 201
    send_code("/filters/scramble/data", b"\0asm one")
    send_code("/filters/scramble/data", b"\0asm two")
    api.put("/filters/scramble", {"help": "second"}, format="json")
    back = api.post("/filters/scramble/rollback", {"revision": 1}, format="json").json()
    assert (back["revision"], back["sha256"], back["help"]) == (3, digest("\0asm one"), "second")
    assert b"".join(api.get("/filters/scramble/data").streaming_content) == b"\0asm one"


def test_ten_earlier_revisions_are_kept(api, send_code):
    scramble = {"keyword": "scramble", "environment": "wasm", "language": "wasm"}
    api.post("/filters", scramble, format="json")
    for number in range(13):
        last = send_code("/filters/scramble/data", f"\0asm {number}")
    assert [one["revision"] for one in last.json()["revisions"]] == list(range(12, 2, -1))
    refused = api.post("/filters/scramble/rollback", {"revision": 2}, format="json")
    assert refused.status_code == 404
    assert "12, 11" in refused.json()["error"]["message"]


def test_code_must_understand_what_policies_say_to_it(api, create, registered, send_code):
    send_code(PATH, INVERT)
    policy = create("FOR TENANT AUTH_a DO SET invert WITH strength=3")
    other = INVERT.replace('"strength"', '"power"')
    assert policy["id"] in send_code(PATH, other, 409).json()["error"]["message"]
    api.delete(f"/policies/{policy['id']}")
    assert send_code(PATH, other).json()["revision"] == 2


def test_native_filters_have_no_files_beside_them(api, registered, send_code):
    send_code(PATH, INVERT)
    assert api.post("/filters/dependencies", {"name": "words.txt"}, format="json").status_code == 201
    send_code("/filters/dependencies/words.txt/data", "words")
    for name, status in (("invert", 409), ("metric/X", 404)):
        path = "/filters/dependencies/AUTH_a/deploy/words.txt"
        assert api.put(path, {"filters": [name]}, format="json").status_code == status


def test_of_two_concurrent_uploads_one_is_a_conflict(api, backend, registered, send_code, monkeypatch):
    send_code(PATH, INVERT)
    put = SwiftCodeStore.put

    def racing(shelf, *args):
        monkeypatch.setattr(SwiftCodeStore, "put", put)
        assert api.put("/filters/invert", {"self_service": True}, format="json").status_code == 200
        put(shelf, *args)

    monkeypatch.setattr(SwiftCodeStore, "put", racing)
    refused = send_code(PATH, SECOND, 409).json()["error"]["message"]
    assert "by another request" in refused
    found = backend.store.upload("invert")
    assert (found.sha256, found.revision, found.self_service) == (digest(INVERT), 1, True)
