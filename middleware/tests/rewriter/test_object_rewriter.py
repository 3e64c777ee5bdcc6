"""The rewrite of one object: copied headers, skipped objects, and concurrent writes of clients."""

import json
import random

import pytest

from sluice_core.describe import FILTER, PROXY, ActionInfo
from sluice_core.testing import assignment
from sluice_filters.api import Filter, Stream
from sluice_filters.chain import ChainEncoder
from sluice_filters.encryption.keys.key_file import render_ring
from sluice_filters.encryption.keys.ring import Ring
from sluice_middleware.swift.internal_api import Timeout, Timestamp
from sluice_middleware.testing import FakeObject, ProxyStack
from sluice_middleware.wsgi.encoding import BATCH
from sluice_middleware.wsgi.internal_client import make_environment
from sluice_middleware.wsgi.stored_object import StoredObject, describe_upload
from sluice_middleware.wsgi.sysmeta import CHAIN
from sluice_rewriter.object_rewriter import FAILED, GONE, REWRITTEN, SKIPPED, UNCHANGED, ObjectRewriter, Outcome
from sluice_rewrites.accounts import copies_account
from sluice_rewrites.messages import KEY, PLAIN, POLICIES
from sluice_rewrites.offsets import RANDOM_BITS

PATH = "/v1/AUTH_a/c/o"
TARGET = ("AUTH_a", "c", "o")
TEXT = b"".join(b"%d: a line that compresses\n" % number for number in range(20_000))
NOISE = random.Random(2).randbytes(400_000)
WRITTEN = "1795617187.03641"


class Twice(Stream):
    def feed(self, data):
        return data + data


class Double(Filter):
    info = ActionInfo("double", FILTER, "x", places=(PROXY,), stage=100, on_put=True, changes_content=True)

    def encoder(self, hint):
        return Twice()


@pytest.fixture
def stack(tmp_path):
    return ProxyStack(tmp_path)


@pytest.fixture
def rewriter(stack):
    return ObjectRewriter(stack.proxy.handler)


@pytest.fixture
def compressed(stack):
    stack.set_policies(assignment(keyword="compression", path="AUTH_a"))


@pytest.fixture
def stored(stack):
    """Store an object as a client of the stack does, with a time."""

    def put(body=TEXT, written=WRITTEN, **headers):
        assert stack("PUT", PATH, body, **headers).status_int == 201
        found = stack.swift.objects[PATH]
        found.headers["X-Backend-Data-Timestamp"] = written
        return found

    return put


def test_an_object_is_encoded_by_the_policies_in_force(stack, stored, rewriter):
    stored()
    stack.set_policies(assignment(keyword="compression", path="AUTH_a"))
    assert rewriter.rewrite(TARGET, POLICIES) == Outcome(REWRITTEN, size=len(TEXT))
    assert CHAIN in stack.swift.objects[PATH].headers
    assert stack("GET", PATH).body == TEXT
    assert stack.all_closed()


#: The bytes that decide about compression, and the size of one batch.
SIZES = (5_000, (64 << 10) - 1, 64 << 10, 100_000, BATCH - 1, BATCH, BATCH + 1)


@pytest.mark.parametrize("size", SIZES)
def test_an_object_of_any_size_is_compressed_and_made_plain_again(stack, stored, rewriter, size):
    body = TEXT[:size]
    stored(body)
    stack.set_policies(assignment(keyword="compression", path="AUTH_a"))
    assert rewriter.rewrite(TARGET, POLICIES) == Outcome(REWRITTEN, size=size)
    assert 0 < len(stack.swift.objects[PATH].body) < size
    assert stack("GET", PATH).body == body
    stack.swift.objects[PATH].headers["X-Backend-Data-Timestamp"] = WRITTEN
    assert rewriter.rewrite(TARGET, PLAIN) == Outcome(REWRITTEN, size=size)
    assert stack.swift.objects[PATH].body == body


def test_what_a_faulty_filter_makes_without_a_record_is_never_stored(stack, stored, rewriter, monkeypatch):
    stored()
    stack.set_policies(assignment(keyword="compression", path="AUTH_a"))
    monkeypatch.setattr(ChainEncoder, "records", lambda self: ())
    assert rewriter.rewrite(TARGET, POLICIES).state == FAILED
    assert stack.swift.objects[PATH].body == TEXT


def test_an_object_is_made_plain(stack, compressed, stored, rewriter):
    before = stored().listing
    assert rewriter.rewrite(TARGET, PLAIN) == Outcome(REWRITTEN, size=len(TEXT))
    found = stack.swift.objects[PATH]
    assert (found.body, found.listing) == (TEXT, before)
    assert not [name for name in found.headers if "Sluice" in name or "Override" in name]


def test_an_object_that_is_as_wanted_is_not_read(stack, compressed, stored, rewriter):
    stored()
    stack.swift.requests.clear()
    assert rewriter.rewrite(TARGET, POLICIES) == Outcome(UNCHANGED, size=len(TEXT))
    assert [method for method, _, _ in stack.swift.requests] == ["HEAD"]


def test_policies_are_not_asked_about_a_copy_of_a_contracted_object(stack, compressed, stored, rewriter):
    body = stored().body
    target = (copies_account("AUTH_a"), "cold", "1")
    path = "/v1/" + "/".join(target)
    stack.swift.objects[path] = stack.swift.objects[PATH]
    assert rewriter.rewrite(target, POLICIES).state == UNCHANGED
    assert stack.swift.objects[path].body == body != TEXT
    assert rewriter.rewrite(target, PLAIN).state == REWRITTEN
    assert stack.swift.objects[path].body == TEXT


@pytest.mark.parametrize("params", [{"engine": "gzip"}, {"engine": "lz4"}])
def test_another_engine_is_another_filter(stack, compressed, stored, rewriter, params):
    stored()
    stack.set_policies(assignment(keyword="compression", path="AUTH_a", params=params))
    assert rewriter.rewrite(TARGET, POLICIES).state == REWRITTEN
    assert f'"engine":"{params["engine"]}"' in stack.swift.objects[PATH].headers[CHAIN]


def test_the_put_goes_to_the_datas_own_time_with_an_offset(stack, compressed, stored, rewriter):
    stored(written=f"{WRITTEN}_0000000500000007")
    assert rewriter.rewrite(TARGET, PLAIN).state == REWRITTEN
    sent = Timestamp(stack.swift.headers[-1]["X-Timestamp"])
    assert sent.normal == Timestamp(WRITTEN).normal
    assert sent.offset >> RANDOM_BITS == 6


def test_what_belongs_to_the_object_is_carried_over(stack, compressed, stored, rewriter):
    given = {
        "content_type": "text/plain;swift_bytes=7", "x_object_meta_colour": "blue", "x_delete_at": "1895617187",
        "x_object_sysmeta_container_update_override_etag": "abc; s3_etag=def", "content_encoding": "br",
        "x_object_sysmeta_s3api_etag": "def", "x_object_transient_sysmeta_note": "n",
    }  # fmt: skip
    known = stored(**given)
    before, listing = dict(known.headers), known.listing
    stack.swift.headers.clear()
    assert rewriter.rewrite(TARGET, PLAIN).state == REWRITTEN
    sent = {name.lower(): value for name, value in stack.swift.headers[-1].items()}
    assert sent["content-type"] == "text/plain;swift_bytes=7"
    for name in ("X-Object-Meta-Colour", "X-Object-Sysmeta-S3Api-Etag", "X-Object-Transient-Sysmeta-Note"):
        assert sent[name.lower()] == before[name], name
    assert stack.swift.objects[PATH].listing == listing


@pytest.fixture
def keyed(tmp_path):
    """A stack whose key file has two keys: objects stored until ``activate`` are encrypted under the first."""
    path = tmp_path / "keys.json"
    secrets = {"old": b"o" * 32, "new": b"n" * 32}
    path.write_bytes(render_ring(Ring("old", secrets)))
    path.chmod(0o600)
    made = ProxyStack(tmp_path, key_file=str(path))

    def activate(key):
        path.write_bytes(render_ring(Ring(key, secrets)))
        made.proxy.handler.filters["encryption"].surroundings.keys._checked_at = float("-inf")  # read once a second

    return made, activate


def test_an_object_is_brought_to_the_active_key_and_what_is_inside_stays(keyed):
    stack, activate = keyed
    stack.set_policies(assignment("p.0", "AUTH_a", "compression"), assignment("q.0", "AUTH_a", "encryption"))
    assert stack("PUT", PATH, TEXT, x_object_meta_colour="blue").status_int == 201
    found = stack.swift.objects[PATH]
    found.headers["X-Backend-Data-Timestamp"] = WRITTEN
    before, listing = json.loads(found.headers[CHAIN]), found.listing
    rewriter = ObjectRewriter(stack.proxy.handler)
    assert rewriter.rewrite(TARGET, KEY) == Outcome(UNCHANGED, size=len(TEXT))
    stack.set_policies()
    activate("new")
    assert rewriter.rewrite(TARGET, KEY) == Outcome(REWRITTEN, size=len(TEXT))
    after = json.loads(stack.swift.objects[PATH].headers[CHAIN])
    assert [record["r"].get("key") for record in after] == [None, "new"]
    assert after[0] == before[0]
    assert stack.swift.objects[PATH].listing == listing
    assert stack("GET", PATH).body == TEXT
    assert stack("GET", PATH).headers["X-Object-Meta-Colour"] == "blue"


def test_noise_under_a_compression_policy_is_left_as_it_is(stack, stored, rewriter):
    stored(NOISE)
    stack.set_policies(assignment(keyword="compression", path="AUTH_a"))
    stack.swift.requests.clear()
    assert rewriter.rewrite(TARGET, POLICIES) == Outcome(UNCHANGED, size=len(NOISE))
    assert "PUT" not in [method for method, _, _ in stack.swift.requests]
    assert stack.all_closed()


@pytest.mark.parametrize("body", [NOISE, NOISE[:5000], b"tiny"], ids=["large", "small", "tiny"])
def test_what_was_compressed_in_vain_and_then_encrypted_is_left_as_it_is(keyed, body):
    stack, activate = keyed
    stack.set_policies(assignment("p.0", "AUTH_a", "compression"), assignment("q.0", "AUTH_a", "encryption"))
    assert stack("PUT", PATH, body).status_int == 201
    stack.swift.objects[PATH].headers["X-Backend-Data-Timestamp"] = WRITTEN
    rewriter = ObjectRewriter(stack.proxy.handler)
    assert rewriter.rewrite(TARGET, POLICIES) == Outcome(UNCHANGED, size=len(body))
    activate("new")
    assert rewriter.rewrite(TARGET, POLICIES) == Outcome(REWRITTEN, size=len(body))
    assert stack("GET", PATH).body == body
    assert stack.all_closed()


@pytest.mark.parametrize("body", [TEXT, TEXT[:5000]], ids=["large", "small"])
def test_what_was_encrypted_alone_is_compressed_too(keyed, body):
    stack, _ = keyed
    stack.set_policies(assignment("q.0", "AUTH_a", "encryption"))
    assert stack("PUT", PATH, body).status_int == 201
    stack.swift.objects[PATH].headers["X-Backend-Data-Timestamp"] = WRITTEN
    stack.set_policies(assignment("p.0", "AUTH_a", "compression"), assignment("q.0", "AUTH_a", "encryption"))
    assert ObjectRewriter(stack.proxy.handler).rewrite(TARGET, POLICIES) == Outcome(REWRITTEN, size=len(body))
    assert [one["f"] for one in json.loads(stack.swift.objects[PATH].headers[CHAIN])] == ["compression", "encryption"]
    assert stack("GET", PATH).body == body


def test_an_object_that_is_gone_is_no_fault(rewriter):
    assert rewriter.rewrite(TARGET, PLAIN) == Outcome(GONE, size=0)


def test_an_object_under_swifts_own_encryption_is_skipped(stack, stored, rewriter):
    stored().headers["X-Object-Sysmeta-Crypto-Body-Meta"] = "{}"
    assert rewriter.rewrite(TARGET, PLAIN) == Outcome(SKIPPED, "encrypted by Swift")


def test_a_damaged_object_stays_and_is_reported(stack, compressed, stored, rewriter):
    known = stored()
    broken = bytearray(known.body)
    broken[100] ^= 1
    stack.swift.objects[PATH] = FakeObject(bytes(broken), known.headers, known.etag)
    outcome = rewriter.rewrite(TARGET, PLAIN)
    assert (outcome.state, outcome.reason) == (FAILED, "damaged")
    assert outcome.detail
    assert stack.swift.objects[PATH].body == bytes(broken)


@pytest.mark.parametrize("error", [RuntimeError("what is this"), Timeout(None)])
def test_whatever_goes_wrong_with_one_object_does_not_end_the_others(
    stack, stored, rewriter, monkeypatch, caplog, error
):
    stored()

    def call(env, start_response):
        raise error

    monkeypatch.setattr(stack.proxy.handler, "app", call)
    outcome = rewriter.rewrite(TARGET, PLAIN)
    assert (outcome.state, outcome.reason) == (FAILED, "cannot be read or written now")
    assert repr(error) in outcome.detail
    assert "object `AUTH_a/c/o` is not rewritten" in caplog.text


def test_names_of_metadata_that_are_not_ascii_are_carried_over_byte_for_byte():
    """The upper case of ``ÿ`` is not in latin-1, and that of ``ß`` has two letters."""
    env = make_environment("PUT", *TARGET)
    describe_upload(env, StoredObject([("X-Object-Meta-\u00ff-\u00df", "\u00c3\u00bf"), ("Content-Length", "5")]))
    assert env["HTTP_X_OBJECT_META_\u00ff_\u00df"] == "\u00c3\u00bf"


def test_an_object_that_changes_is_judged_again(stack, compressed, stored, rewriter, monkeypatch):
    stored()
    answered = []

    original = type(stack.swift).__call__

    def call(env, start_response):
        if env["REQUEST_METHOD"] == "PUT" and len(answered) < 2:
            answered.append(env["HTTP_X_TIMESTAMP"])
            start_response("202 Accepted", [("Content-Length", "0")])
            return []
        return original(stack.swift, env, start_response)

    monkeypatch.setattr(stack.proxy.handler, "app", call)
    assert rewriter.rewrite(TARGET, PLAIN).state == REWRITTEN
    assert len(answered) == 2
    assert len(set(answered)) == 2, "each attempt has an offset of its own"


def test_a_filter_that_changes_bytes_for_good_does_not_run_twice(stack, stored, tmp_path):
    """Its output is the object that the client stored; a second run would change the object."""

    other = ProxyStack(tmp_path / "x", Double)
    other.swift.objects = stack.swift.objects
    stored()
    other.set_policies(assignment(keyword="double", path="AUTH_a"))
    assert ObjectRewriter(other.proxy.handler).rewrite(TARGET, POLICIES).state == UNCHANGED
    assert stack.swift.objects[PATH].body == TEXT
