"""Filters that are registered and uploaded while the cluster runs, in the fast environments."""

import pytest
from tests.support.sandbox.process import XOR, compiled

from sluice_client import ApiError

pytestmark = pytest.mark.usefixtures("sandbox")

TEXT = b"".join(b"%d: the quick brown fox jumps over the lazy dog\n" % n for n in range(20_000))
SHOUT = b"""
class Shout:
    def __init__(self, params, direction):
        self._word = params.get("word", "")

    def feed(self, data):
        return data.upper()

    def finish(self):
        return self._word.encode()
"""
KEY = {"name": "key", "type": "int", "minimum": 0, "maximum": 255, "default": 90}
WASM = {
    "keyword": "wscramble",
    "environment": "wasm",
    "language": "wasm",
    "main": "xor",
    "reverse": True,
    "capabilities": {"changes_length": False, "stage": 450},
    "parameters": [KEY],
}
JAILED = {"environment": "process", "language": "python"}
SCRAMBLE = {**WASM, **JAILED, "keyword": "pscramble", "main": "Xor"}
LOUD = {
    **JAILED,
    "keyword": "shout",
    "main": "Shout",
    "parameters": [{"name": "word", "type": "str", "default": ""}],
    "capabilities": {"stage": 220},
}


@pytest.fixture
def enforced(api, eventually):
    """Creates a policy and waits until workers have the code that it needs."""
    made = []

    def create(sentence):
        created = api.create_policy(sentence)
        made.append(created["id"])
        return eventually(lambda: is_enforced(api, created["id"]), 20)

    yield create
    here = {one["id"] for one in api.policies(page=1000)}
    for policy_id in here & set(made):
        api.delete_policy(policy_id)


def is_enforced(api, policy_id):
    found = api.policy(policy_id)
    return found if found["enforced"]["nodes"] == found["enforced"]["total"] >= 1 else None


def check_round(swift, path, body):
    assert swift.request("PUT", path, body, Content_Type="text/plain").status == 201
    answer = swift.request("GET", path)
    assert (answer.status, answer.body) == (200, body)
    part = swift.request("GET", path, Range="bytes=70000-70009")
    assert (part.status, part.body) == (206, body[70000:70010])
    assert swift.request("HEAD", path).headers["content-length"] == str(len(body))


@pytest.mark.parametrize("place", ["PROXY", "STORAGE_NODE"])
@pytest.mark.parametrize("description", [WASM, SCRAMBLE], ids=["wasm", "process"])
def test_a_reversible_filter_is_undone_whatever_the_policies_say_later(
    swift, api, registered, enforced, cluster, description, place
):
    registered(description, compiled("xor") if description is WASM else XOR)
    container = f"up-{description['keyword']}-{place.lower()}"
    swift.request("PUT", container)
    policy = enforced(f"FOR CONTAINER 'AUTH_test/{container}' DO SET {description['keyword']} WITH key=7 ON {place}")
    body = container.encode() + TEXT
    check_round(swift, f"{container}/o", body)
    scrambled = bytes(value ^ 7 for value in body[:64])
    files = [path for folder in cluster.device_folders for path in folder.rglob("*.data")]
    assert sum(path.read_bytes().startswith(scrambled) for path in files) == 3
    api.delete_policy(policy["id"])
    assert swift.request("GET", f"{container}/o").body == body


def test_a_read_time_filter_in_a_jail_changes_what_is_read(swift, registered, enforced):
    registered(LOUD, SHOUT)
    swift.request("PUT", "up-loud")
    swift.request("PUT", "up-loud/o", b"quietly", Content_Type="text/plain")
    enforced("FOR CONTAINER AUTH_test/up-loud DO SET shout WITH word=now ON PROXY")
    answer = swift.request("GET", "up-loud/o")
    assert (answer.status, answer.body) == (200, b"QUIETLYnow")
    assert "etag" not in answer.headers


def test_objects_of_an_earlier_revision_stay_readable(swift, api, registered, enforced, eventually):
    registered(WASM, compiled("xor"))
    swift.request("PUT", "up-revised")
    enforced("FOR CONTAINER AUTH_test/up-revised DO SET wscramble ON PROXY")
    check_round(swift, "up-revised/before", TEXT)
    again = api.upload_filter("wscramble", compiled("rot13"), wait=10)
    assert again["revision"] == 2
    try:
        assert swift.request("GET", "up-revised/before").body == TEXT
    finally:
        api.upload_filter("wscramble", compiled("xor"), wait=10)


def test_code_with_another_digest_is_refused_and_nothing_changes(api, registered):
    before = registered(WASM, compiled("xor"))
    with pytest.raises(ApiError, match="SHA-256"):
        api._transport.call(
            "PUT", "/filters/wscramble/data", headers={"X-Content-Sha256": "0" * 64}, data=compiled("rot13")
        )
    assert api.filter("wscramble")["revision"] >= before["revision"]
    assert api.filter("wscramble")["sha256"] != "0" * 64


def test_a_node_that_cannot_run_a_filter_says_why(api, registered, eventually):
    api.register_filter({**JAILED, "keyword": "broken", "main": "Broken"})
    api.upload_filter("broken", b"this is no python", wait=10)
    created = api.create_policy("FOR CONTAINER AUTH_test/up-broken DO SET broken ON PROXY")
    try:
        refused = eventually(lambda: api.policy(created["id"])["enforced"]["refused"], 10)
        assert "broken" in refused[0]["reason"]
    finally:
        api.delete_policy(created["id"])
        api.unregister_filter("broken", force=True)
