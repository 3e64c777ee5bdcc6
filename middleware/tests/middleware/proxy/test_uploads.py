"""The treatment of a PUT: unchanged, encoded, or marked for storage nodes; and the look-up of its policies."""

import hashlib
import io
import json
import random
from typing import ClassVar

import pytest

from sluice_core.describe import FILTER, STORAGE_NODE, ActionInfo
from sluice_core.messages.predicate import Facts
from sluice_core.resolve import Candidates
from sluice_core.testing import assignment
from sluice_filters.api import Filter, Stream
from sluice_filters.key_ring import MissingKey
from sluice_filters.testing.fake_filters import HeadedXor
from sluice_middleware.swift.proxy_api import Request, Response
from sluice_middleware.testing import FixedPolicies, ProxyStack
from sluice_middleware.wsgi import encoding, sysmeta
from sluice_middleware.wsgi.policy_lookup import PolicyLookup, logical_object

PATH = "/v1/AUTH_a/c/o"
NOISE = random.Random(5).randbytes(3 * encoding.BATCH)
TEXT = b"the quick brown fox jumps over the lazy dog\n" * 30_000
MIXED = NOISE + TEXT


def md5(data):
    return hashlib.md5(data).hexdigest()


class Toy(HeadedXor):
    """A reversible filter that changes any bytes."""

    info: ClassVar[ActionInfo] = ActionInfo(
        keyword="toy",
        kind=FILTER,
        help="a toy",
        places=("proxy", "storage_node"),
        stage=800,
        changes_content=True,
        changes_length=True,
        reversible=True,
        random_access=True,
    )


@pytest.fixture
def stand(tmp_path):
    made = ProxyStack(tmp_path, Toy)
    made.set_policies(assignment(keyword="compression", stage=300))
    yield made
    assert made.all_closed(), "an answer was left open"


def touched(stand):
    """Whether the last PUT reached Swift changed."""
    return "Transfer-Encoding" in stand.swift.headers[-1]


# -- unchanged ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "changed"),
    [
        (NOISE, False),
        (TEXT, True),
        (MIXED, False),
        (NOISE[: encoding.BATCH], True),
        (NOISE[: encoding.BATCH + 1], False),
    ],
    ids=["noise", "text", "mixed", "no more than a batch", "a byte more"],
)
def test_an_upload_that_will_not_change_reaches_swift_as_it_came(stand, body, changed):
    put = stand("PUT", PATH, body=body, Etag=md5(body))
    assert (put.status_int, put.headers["Etag"].strip('"')) == (201, md5(body))
    assert touched(stand) is changed
    sent = stand.swift.headers[-1]
    if not changed:
        assert (sent["Content-Length"], sent["Etag"]) == (str(len(body)), md5(body))
        assert stand.swift.objects[PATH].body == body
    assert stand("GET", PATH).body == body


@pytest.mark.parametrize(
    "policies",
    [
        [("noop", 100), ("compression", 300)],
        [("compression", 300)],
    ],
)
def test_an_upload_passes_untouched_when_all_filters_decline(stand, policies):
    stand.set_policies(*(assignment(f"p.{n}", keyword=one, stage=stage) for n, (one, stage) in enumerate(policies)))
    stand("PUT", PATH, body=NOISE)
    assert not touched(stand)


def test_one_filter_that_never_declines_forces_encoding(stand):
    stand.set_policies(assignment("p.1", keyword="compression", stage=300), assignment("p.2", keyword="toy", stage=800))
    stand("PUT", PATH, body=NOISE)
    assert touched(stand)
    assert stand("GET", PATH).body == NOISE


def test_a_wrong_etag_of_an_untouched_upload_is_swifts_to_refuse(stand):
    assert stand("PUT", PATH, body=NOISE, Etag=md5(b"x")).status_int == 422
    assert PATH not in stand.swift.objects


class Reads:
    """``wsgi.input`` that counts the bytes read, and may fail."""

    def __init__(self, body, error=None):
        self.body = io.BytesIO(body)
        self.taken = 0
        self.error = error

    def read(self, size=-1):
        data = self.body.read(size)
        if not data and self.error:
            raise self.error
        self.taken += len(data)
        return data


def send(stand, source, length, **more):
    env = Request.blank(PATH, method="PUT").environ
    env |= {"wsgi.input": source, "CONTENT_LENGTH": str(length), **more}
    return stand.answer(env)


@pytest.mark.parametrize("missing", ["authorization", "container", "condition"])
def test_nothing_is_read_before_swift_would_let_the_upload_in(stand, missing):
    more, source = {}, Reads(NOISE)
    if missing == "authorization":
        more["swift.authorize"] = lambda request: Response(status=403)
    elif missing == "container":
        stand.swift.missing.add("/v1/AUTH_a/c")
    else:
        more["HTTP_IF_NONE_MATCH"] = "*"
    taken = []
    inner = stand.proxy.handler.app
    stand.proxy.handler.app = lambda env, start: (taken.append(source.taken), inner(env, start))[1]
    answer = send(stand, source, len(NOISE), **more)
    assert set(taken) == {0}
    assert answer.status_int == {"authorization": 403, "container": 404, "condition": 201}[missing]


@pytest.mark.parametrize("sent", [0, 1, encoding.BATCH - 1, encoding.BATCH, encoding.BATCH + 1, len(NOISE) - 1])
@pytest.mark.parametrize("error", [None, OSError("gone"), ValueError("bad chunk")])
def test_an_upload_that_breaks_off_is_answered_as_ever(stand, sent, error):
    assert send(stand, Reads(NOISE[:sent], error), len(NOISE)).status_int == 499
    assert PATH not in stand.swift.objects


def test_the_sample_is_encoded_only_once(stand):
    fed = []

    class Watching(Stream):
        def feed(self, data):
            fed.append(len(data))
            return data

        def record(self):
            return {"size": sum(fed)}

    class Early(Toy):
        info = ActionInfo(
            keyword="early",
            kind=FILTER,
            help="x",
            stage=700,
            changes_content=True,
            changes_length=True,
            reversible=True,
        )
        decides_within: ClassVar[int] = encoding.BATCH

        def encoder(self, hint):
            return Watching()

    stand.set_filters({"early": Early})
    stand.set_policies(assignment(keyword="early", stage=700))
    stand("PUT", PATH, body=NOISE, Etag=md5(NOISE))
    assert touched(stand)
    assert sum(fed) == len(NOISE)
    assert stand.swift.objects[PATH].body == NOISE
    assert stand.swift.objects[PATH].headers[sysmeta.ETAG] == md5(NOISE)


# -- marked for storage nodes ---------------------------------------------------------------------

NODE_TOY = assignment("p.2", keyword="toy", stage=800, place=STORAGE_NODE)


def test_storage_node_steps_are_sent_with_the_upload(stand):
    stand.set_policies(NODE_TOY, assignment("p.3", keyword="noop", stage=100, place=STORAGE_NODE))
    stand("PUT", PATH, body=TEXT)
    value = stand.swift.objects[PATH].headers[sysmeta.NODE]
    assert json.loads(value) == [{"f": "toy", "v": 1, "p": {}}]
    assert stand.swift.objects[PATH].body == TEXT
    for method in ("GET", "HEAD"):
        assert not [name for name in stand(method, PATH).headers if "sluice" in name.lower()]


def test_proxy_compression_and_storage_node_filters_combine(stand):
    stand.set_policies(assignment("p.1", keyword="compression", stage=300), NODE_TOY)
    for body in (TEXT, NOISE):
        stand("PUT", PATH, body=body)
        assert sysmeta.NODE in stand.swift.objects[PATH].headers
        assert (sysmeta.CHAIN in stand.swift.objects[PATH].headers) == (body == TEXT)
        assert stand("GET", PATH).body == body


@pytest.mark.parametrize(
    "more",
    [{"body": b""}, {"body": b"[]", "X_Static_Large_Object": "True"}, {"body": b"x", "X_Object_Manifest": "c/p"}],
)
def test_storage_node_steps_are_not_sent_for_manifests_and_empty_objects(stand, more):
    stand.set_policies(NODE_TOY)
    stand("PUT", PATH, **more)
    assert sysmeta.NODE not in stand.swift.objects[PATH].headers


@pytest.mark.parametrize("method", ["PUT", "POST"])
def test_storage_node_steps_from_others_are_removed(stand, method):
    stand.set_policies()
    stand(method, PATH, body=b"x", **{sysmeta.NODE.replace("-", "_"): "[]"})
    assert sysmeta.NODE not in stand.swift.headers[-1]


@pytest.mark.parametrize("method", ["GET", "HEAD", "POST", "DELETE", "PUT"])
def test_a_storage_nodes_refusal_is_503_with_its_reason(stand, method):
    stand.set_policies(NODE_TOY)
    stand.proxy.handler.app = Response(status=409, headers={sysmeta.REFUSED: "no key `k1`"})
    answer = stand(method, PATH, body=b"x" if method == "PUT" else None)
    assert answer.status_int == 503
    if method != "HEAD":
        assert b"a storage node refused: no key `k1`" in answer.body
    assert sysmeta.REFUSED not in answer.headers


def test_a_conflict_without_a_reason_is_a_conflict(stand):
    stand.set_policies(NODE_TOY)
    stand.proxy.handler.app = Response(status=409)
    assert stand("DELETE", PATH).status_int == 409


@pytest.mark.parametrize("method", ["PUT", "GET"])
def test_a_refusal_that_swift_passed_on_without_the_header_has_its_reason_in_the_body(stand, method):
    stand.set_policies(NODE_TOY)
    refusal = Response(status=409, body="no key `k1`")
    refusal.status = sysmeta.REFUSED_STATUS
    stand.proxy.handler.app = refusal
    answer = stand(method, PATH, body=b"x" if method == "PUT" else None)
    assert answer.status_int == 503
    assert b"a storage node refused: no key `k1`" in answer.body


# -- keys ------------------------------------------------------------------------------------------


class Keyless(Toy):
    """Needs a key that does not exist."""

    def encoder(self, hint):
        raise MissingKey("no key `k1` in key file `x`")

    def decoder(self, record, window=None):
        raise MissingKey("no key `k1` in key file `x`")

    def locate(self, record, start, stop):
        raise MissingKey("no key `k1` in key file `x`")


@pytest.mark.parametrize("value", [None, "bytes=0-5", "bytes=-5", "bytes=0-1,5-6"])
def test_a_missing_key_is_503_with_the_reason_and_head_still_works(stand, value):
    stand.set_policies(assignment(keyword="toy", stage=800))
    stand("PUT", PATH, body=TEXT)
    stand.set_filters({"toy": Keyless})
    answer = stand("GET", PATH, **({"Range": value} if value else {}))
    assert answer.status_int == 503
    assert b"no key `k1`" in answer.body
    head = stand("HEAD", PATH)
    assert (head.status_int, head.headers["Content-Length"]) == (200, str(len(TEXT)))
    before = stand.swift.objects[PATH].body
    assert stand("PUT", PATH, body=TEXT).status_int == 503
    assert stand.swift.objects[PATH].body == before


def test_a_key_that_is_missed_in_the_middle_of_an_upload_stores_nothing(stand):
    class Late(Toy):
        def encoder(self, hint):
            class Failing(Stream):
                def feed(self, data):
                    raise MissingKey("no key")

            return Failing()

    stand.set_filters({"toy": Late})
    stand.set_policies(assignment(keyword="toy", stage=800))
    assert stand("PUT", PATH, body=TEXT).status_int == 503
    assert PATH not in stand.swift.objects


# -- the look-up of policies -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("container", "name", "expected"),
    [
        ("X", "obj", ("X", "obj")),
        ("X+segments", "dir/key/YTQ0/12", ("X", "dir/key")),
        ("X+segments", "dir/key/YTQ0", ("X", "dir/key/YTQ0")),
        ("X+segments", "key", ("X", "key")),
        ("+segments", "key", ("+segments", "key")),
        ("X_segments", "key", ("X_segments", "key")),
        ("\0versions\0X", "\0ob\0j\0" + "8" * 16, ("X", "ob\0j")),
        ("\0versions\0X", "strange", ("X", "strange")),
        ("\0versions\0X+segments", "\0o\0" + "8" * 16, ("\0versions\0X", "\0o\0" + "8" * 16)),
    ],
)
def test_segment_and_version_containers_map_to_their_owner(container, name, expected):
    assert logical_object(("AUTH_a", container, name)) == ("AUTH_a", *expected)


def found(policies, *target):
    selector = PolicyLookup(policies, {"toy": Toy})
    candidates = selector.candidates(target)
    return [one.step.id for one in selector.pipeline(candidates, Facts("PUT", "o"))]


def test_a_policy_on_the_hidden_container_itself_stands_in_place_of_those_on_its_owner():
    own = {"AUTH_a/X": [assignment("p.x", keyword="toy")], "AUTH_a/Y": [assignment("p.y", keyword="toy")]}
    own["AUTH_a/Y+segments"] = [assignment("p.own", keyword="toy")]
    policies = FixedPolicies(assignment("p.all", keyword="toy"), paths=own)
    assert found(policies, "AUTH_a", "X+segments", "k/u/1") == ["p.x"]
    assert found(policies, "AUTH_a", "\0versions\0X", "\0k\0" + "1" * 16) == ["p.x"]
    assert found(policies, "AUTH_a", "Y+segments", "k/u/1") == ["p.own"]
    assert found(policies, "AUTH_a", "Z+segments", "k/u/1") == ["p.all"]


def test_parts_of_a_multipart_upload_are_encoded_and_counted_as_their_bucket_is(stand):
    stand.set_policies(paths={"AUTH_a/bucket": [assignment(keyword="compression", stage=300, params={"min_size": 0})]})
    part = "/v1/AUTH_a/bucket+segments/key/upload/1"
    stand("PUT", part, body=TEXT)
    assert len(stand.swift.objects[part].body) < len(TEXT)
    assert stand("GET", part).body == TEXT
    rows = {path for path, _, _ in stand.proxy.meter.changed()}
    assert rows == {"AUTH_a", "AUTH_a/bucket", "AUTH_a/bucket/key"}


@pytest.mark.parametrize("body", [b"", TEXT])
def test_a_version_of_an_object_is_encoded_although_swift_announces_nothing(stand, body):
    stand.set_policies(paths={"AUTH_a/c": [assignment(keyword="compression", stage=300, params={"min_size": 0})]})
    env = Request.blank("/v1/AUTH_a/%00versions%00c/%00o%008204", method="PUT").environ
    env |= {"wsgi.input": io.BytesIO(body), "CONTENT_LENGTH": "0"}
    assert stand.answer(env).status_int == 201
    stored = stand.swift.objects["/v1/AUTH_a/\0versions\0c/\0o\08204"]
    assert len(stored.body) <= len(body) // 2
    assert (sysmeta.CHAIN in stored.headers) is bool(body)
    assert stored.listing == (len(body), md5(body))


def test_a_filter_class_says_what_it_may_decide_early():
    assert Filter.decides_within == 0


def test_candidates_say_what_they_may_set_under_whatever_condition():
    found = Candidates(
        [
            assignment("p.1", keyword="toy", when=["size", ">", 5]),
            assignment("p.2", "AUTH_test/c", keyword="noop"),
            assignment("p.3", "AUTH_test/c", keyword="gone", verb="delete"),
        ]
    )
    assert found.keywords == {"toy", "noop"}
