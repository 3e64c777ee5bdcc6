"""The proxy middleware over a Swift in memory: every response describes the plain object."""

import hashlib
import io
import random
import zlib

import pytest

from sluice_core.messages.policies import Assignment, Target
from sluice_core.resolve import Candidates
from sluice_filters.api import CorruptData
from sluice_middleware.swift.proxy_api import Request, close_if_possible
from sluice_middleware.testing import ProxyStack as Base
from sluice_middleware.wsgi import sysmeta

PATH = "/v1/AUTH_a/c/o"
TEXT = b"".join(b"line %d of a log that shrinks well\n" % n for n in range(30_000))
NOISE = random.Random(7).randbytes(300_000)


class Stand(Base):
    """The stack with one pipeline for all objects."""

    def __init__(self, tmp_path, *keywords, **params):
        super().__init__(tmp_path)
        self.set_policies(*keywords, **params)

    def set_policies(self, *keywords, **params):
        target = Target("tenant", "name", "AUTH_a")
        super().set_policies(
            *(
                Assignment(f"p.{n}", "p", "filter", "set", keyword, target, params=params, stage=n)
                for n, keyword in enumerate(keywords)
            )
        )

    @property
    def stored(self):
        return self.swift.objects[PATH]


@pytest.fixture
def stand(tmp_path):
    made = Stand(tmp_path, "compression", engine="zstd")
    yield made
    assert made.all_closed(), "an answer was left open"


def md5(data):
    return hashlib.md5(data).hexdigest()


@pytest.mark.parametrize("engine", ["zstd", "lz4", "gzip"])
def test_a_compressed_object_reads_back_with_plain_metadata(stand, engine):
    stand.set_policies("compression", engine=engine)
    put = stand("PUT", body=TEXT)
    assert put.status_int == 201
    assert put.headers["Etag"].strip('"') == md5(TEXT)
    assert len(stand.stored.body) < len(TEXT) // 2
    assert stand.stored.listing == (len(TEXT), md5(TEXT))
    got = stand("GET")
    assert got.body == TEXT
    head = stand("HEAD")
    for answer in (got, head):
        assert answer.headers["Content-Length"] == str(len(TEXT))
        assert answer.headers["Etag"].strip('"') == md5(TEXT)
        assert not [name for name in answer.headers if "sysmeta" in name.lower()]


def test_a_get_undoes_by_the_objects_own_metadata_whatever_the_policies_are_now(stand):
    stand("PUT", body=TEXT)
    stand.set_policies()
    assert stand("GET").body == TEXT


@pytest.mark.parametrize("body", [b"", b"x", b"tiny" * 100, NOISE], ids=["empty", "one byte", "tiny", "noise"])
def test_what_does_not_shrink_is_stored_plain_and_carries_no_metadata(stand, body):
    stand("PUT", body=body)
    assert stand.stored.body == body
    assert not [name for name in stand.stored.headers if "sysmeta" in name.lower()]
    assert stand("GET").body == body


def test_a_range_beyond_the_stored_bytes_has_the_objects_type_whatever_swift_says_of_its_416(stand):
    stand("PUT", body=TEXT, Content_Type="text/x-log")
    inner = stand.proxy.handler.app

    def coded(env, start_response):
        def start(status, headers, exc_info=None):
            wrong = [(name, "text/html" if name.lower() == "content-type" else value) for name, value in headers]
            return start_response(status, wrong if status.startswith("416") else headers, exc_info)

        return inner(env, start)

    stand.proxy.handler.app = coded
    answer = stand("GET", Range="bytes=900000-900009")
    assert (answer.status_int, answer.body) == (206, TEXT[900000:900010])
    assert answer.headers["Content-Type"] == "text/x-log"


RANGES = [
    "bytes=0-0",
    "bytes=0-65535",
    "bytes=0-",
    "bytes=-1",
    "bytes=-70000",
    "bytes=262143-262144",
    "bytes=500000-500099",
    "bytes=1000000-99999999",
    "bytes=99999999-",
    "bytes=5-3",
    "bytes=nonsense",
    "items=0-5",
    "bytes=0-9,20-29",
    "bytes=0-9,900000-",
    "bytes=99999999-,0-4",
    "bytes=-0",
]


@pytest.mark.parametrize("value", RANGES)
@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_a_range_is_answered_as_plain_swift_answers_it(stand, tmp_path, value, method):
    plain = Stand(tmp_path)
    plain("PUT", body=TEXT, Content_Type="text/plain")
    stand("PUT", body=TEXT, Content_Type="text/plain")
    stand.swift.requests.clear()
    expected = plain(method, Range=value)
    answer = stand(method, Range=value)
    assert answer.status == expected.status
    skipped = {"Content-Type"} if "multipart" in expected.headers.get("Content-Type", "") else set()
    for name in {"Content-Length", "Content-Range", "Content-Type", "Etag"} - skipped:
        assert answer.headers.get(name) == expected.headers.get(name), name
    boundary = expected.headers["Content-Type"].partition("boundary=")[2].encode()
    other = answer.headers["Content-Type"].partition("boundary=")[2].encode()
    assert answer.body.replace(other, boundary) == expected.body if boundary else answer.body == expected.body
    assert len(stand.swift.requests) <= 4


@pytest.mark.parametrize(
    "conditions",
    [
        {"If_Match": "{etag}"},
        {"If_Match": '"{etag}"'},
        {"If_Match": "other"},
        {"If_Match": "*"},
        {"If_None_Match": "{etag}"},
        {"If_None_Match": '"other"'},
        {"If_None_Match": "*"},
        {"If_Match": "{etag}", "Range": "bytes=10-19"},
        {"If_None_Match": "{etag}", "Range": "bytes=10-19"},
    ],
)
@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_conditions_compare_the_plain_etag(stand, tmp_path, conditions, method):
    plain = Stand(tmp_path)
    plain("PUT", body=TEXT)
    stand("PUT", body=TEXT)
    headers = {name: value.format(etag=md5(TEXT)) for name, value in conditions.items()}
    expected, answer = plain(method, **headers), stand(method, **headers)
    assert (answer.status, answer.body) == (expected.status, expected.body)
    assert answer.headers.get("Etag") == expected.headers.get("Etag")


@pytest.mark.parametrize(("etag", "status"), [(md5(TEXT), 201), (f'"{md5(TEXT)}"', 201), (md5(b"other"), 422)])
def test_the_clients_etag_is_checked_against_the_plain_bytes(stand, etag, status):
    assert stand("PUT", body=TEXT, Etag=etag).status_int == status
    assert (PATH in stand.swift.objects) == (status == 201)


@pytest.mark.parametrize(("etag", "status"), [(md5(NOISE), 201), (md5(b"other"), 422)])
def test_the_clients_etag_is_checked_where_the_object_stays_plain(stand, etag, status):
    assert stand("PUT", body=NOISE, Etag=etag).status_int == status


def test_a_chunked_upload_without_length_is_compressed_too(stand):
    env = Request.blank(PATH, method="PUT").environ
    env.update({"wsgi.input": io.BytesIO(TEXT), "HTTP_TRANSFER_ENCODING": "chunked"})
    env.pop("CONTENT_LENGTH", None)
    assert stand.answer(env).status_int == 201
    assert len(stand.stored.body) < len(TEXT)
    assert stand("GET").body == TEXT


def test_an_upload_that_is_cut_off_stores_nothing(stand):
    env = Request.blank(PATH, method="PUT").environ
    env.update({"wsgi.input": io.BytesIO(TEXT[:100_000]), "CONTENT_LENGTH": str(len(TEXT))})
    assert stand.answer(env).status_int == 499
    assert PATH not in stand.swift.objects


def test_an_earlier_footers_callback_is_kept(stand):
    env = Request.blank(PATH, method="PUT", body=TEXT).environ
    override = "X-Object-Sysmeta-Container-Update-Override-Etag"
    env["swift.callback.update_footers"] = lambda footers: footers.update({override: "left; s3_etag=1"})
    stand.answer(env)
    assert stand.stored.listing == (len(TEXT), "left; s3_etag=1")


def test_a_listing_etag_given_as_a_header_is_kept(stand):
    override = "X-Object-Sysmeta-Container-Update-Override-Etag"
    stand("PUT", body=TEXT, **{override.replace("-", "_"): "abc; slo_etag=1"})
    assert stand.stored.listing == (len(TEXT), "abc; slo_etag=1")


def test_sluice_sysmeta_of_requests_is_removed(stand):
    stand.set_policies()
    stand("PUT", body=b"plain", X_Object_Sysmeta_Sluice_Chain='[{"f":"noop","r":{"size":1},"v":1}]')
    assert not [name for name in stand.stored.headers if "sluice" in name.lower()]


@pytest.mark.parametrize("header", ["X_Static_Large_Object", "X_Object_Manifest"])
def test_manifests_are_never_transformed(stand, header):
    stand("PUT", body=TEXT, **{header: "c/prefix"})
    assert stand.stored.body == TEXT


def test_an_object_whose_filter_is_missing_here_is_refused_with_the_reason(stand):
    stand("PUT", body=TEXT)
    stand.proxy.filters.pop("compression")
    for headers in ({}, {"Range": "bytes=0-9"}):
        answer = stand("GET", **headers)
        assert answer.status_int == 503
        assert b"compression" in answer.body
    assert stand("HEAD").headers["Content-Length"] == str(len(TEXT))


def test_invalid_metadata_are_a_503(stand):
    stand("PUT", body=TEXT)
    stand.stored.headers[sysmeta.CHAIN] = "{"
    assert stand("GET").status_int == 503
    assert stand("HEAD").status_int == 503


def test_a_policy_that_names_an_unknown_filter_refuses_the_upload(stand):
    stand.set_policies("nosuch")
    answer = stand("PUT", body=TEXT)
    assert answer.status_int == 503
    assert b"`nosuch`" in answer.body
    assert PATH not in stand.swift.objects


@pytest.mark.parametrize("where", [0.01, 0.5, 0.99])
@pytest.mark.parametrize("value", [None, "bytes=0-", "bytes=-100"])
def test_damage_refuses_or_cuts_the_answer_and_never_gives_wrong_bytes(stand, where, value):
    stand("PUT", body=TEXT)
    body = bytearray(stand.stored.body)
    body[int(len(body) * where)] ^= 0x55
    stand.stored.body = bytes(body)
    request = Request.blank(PATH, headers={"Range": value} if value else {})
    status, _, response = request.call_application(stand.reads)
    taken, failed = b"", status.startswith("503")
    try:
        for piece in () if failed else response:
            taken += piece
    except CorruptData:
        failed = True
    finally:
        close_if_possible(response)
    if value == "bytes=-100":
        assert failed or taken == TEXT[-100:]
    else:
        assert failed
        assert TEXT.startswith(taken)


@pytest.mark.parametrize("keyword", ["compression", "checksum"], ids=["another chain", "the same chain"])
def test_an_object_that_changes_between_two_requests_is_asked_for_anew(stand, keyword):
    stand.set_policies(keyword)
    stand("PUT", body=TEXT)
    other = TEXT[::-1]
    inner = stand.swift.__call__
    state = {"n": 0}

    def meddle(env, start_response):
        state["n"] += 1
        if state["n"] == 2:
            stand.proxy.handler.app = inner
            stand("PUT", body=other)
            stand.proxy.handler.app = meddle
        return inner(env, start_response)

    stand.proxy.handler.app = meddle
    answer = stand("GET", Range="bytes=900000-900009")
    assert answer.status_int == 206
    assert answer.body == other[900000:900010]
    assert answer.headers["Etag"].strip('"') == md5(other)


def test_the_second_range_of_an_object_asks_for_the_right_bytes_at_once(stand):
    stand("PUT", body=TEXT)
    stand("GET", Range="bytes=5-9")
    stand.swift.requests.clear()
    for value, expected in [("bytes=900000-900009", TEXT[900000:900010]), ("bytes=-7", TEXT[-7:])]:
        answer = stand("GET", Range=value)
        assert (answer.status_int, answer.body) == (206, expected)
    assert len(stand.swift.requests) == 2
    assert stand("GET", Range="bytes=99999999-").status_int == 416
    assert stand("GET", Range="bytes=0-4", If_None_Match=md5(TEXT)).status_int == 304


@pytest.mark.parametrize("other", [NOISE, TEXT[::-1], b"short"], ids=["plain", "transformed", "short"])
def test_a_replaced_object_invalidates_the_range_index(stand, other):
    stand("PUT", body=TEXT)
    stand("GET", Range="bytes=5-9")
    stand("PUT", body=other)
    assert stand("GET", Range="bytes=1-4").body == other[1:5]
    assert stand("GET", Range="bytes=2-").body == other[2:]


def test_noop_on_both_ways_changes_nothing_and_keeps_the_length(stand):
    stand.set_policies("noop")
    put = stand("PUT", body=NOISE, Etag=md5(NOISE))
    assert put.status_int == 201
    assert stand.stored.body == NOISE
    assert stand("GET").headers["Content-Length"] == str(len(NOISE))
    assert stand("GET", Range="bytes=5-9").body == NOISE[5:10]


def test_requests_for_no_object_pass_unchanged(stand):
    for path in ("/v1/AUTH_a", "/v1/AUTH_a/c", "/info", "/v1/.expiring/1/2"):
        stand("PUT", path, body=TEXT)
        assert stand.swift.objects[path].body == TEXT


def test_a_name_beyond_ascii_finds_its_policies(stand):
    seen = []
    stand.proxy.context.lookup._reader.find = lambda *target: seen.append(target) or Candidates(())
    stand("PUT", "/v1/AUTH_a/caf%C3%A9/%E2%82%AC", body=b"x")
    assert set(seen) == {("AUTH_a", "café", "€")}


def test_the_meter_sees_plain_bytes_and_admitted_requests(stand):
    stand("PUT", body=TEXT)
    stand("GET")
    stand("GET", "/v1/AUTH_a/c/nothing")
    names = stand.proxy.meter.names
    rows = {path: dict(zip(names, values, strict=True)) for path, _, values in stand.proxy.meter.changed()}
    for path in ("AUTH_a", "AUTH_a/c"):
        assert rows[path]["PUTS_SEC"] == 1
        assert rows[path]["GETS_SEC"] == 2
        assert rows[path]["PUT_BW"] == len(TEXT)
        assert rows[path]["GET_BW"] >= len(TEXT)
        assert rows[path]["ACTIVE_REQUESTS"] == 0
    assert zlib.crc32(TEXT) == zlib.crc32(stand("GET").body)
