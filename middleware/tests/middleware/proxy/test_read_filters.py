"""Filters that change the content that is read: on whole objects, with the same bytes wherever they run."""

import hashlib
import json

import pytest
from tests.support.middleware.reads import Cut, Mark, Upper

from sluice_core.describe import STORAGE_NODE
from sluice_core.testing import assignment
from sluice_filters.api import BadParameter, CorruptData, FilterError, Stream
from sluice_filters.pipe import Pipe
from sluice_middleware.proxy.object_handler import COVERED_BY_READ_FILTERS
from sluice_middleware.swift.proxy_api import Request, Response
from sluice_middleware.testing import ProxyStack
from sluice_middleware.wsgi import read_pipeline

PATH = "/v1/AUTH_a/c/o.txt"
BODY = b"".join(b"line %d of the object\n" % n for n in range(2000))


@pytest.fixture
def stand(tmp_path):
    Upper.hints.clear()
    made = ProxyStack(tmp_path, Upper, Mark, Cut)
    yield made
    assert made.all_closed(), "an answer was left open"


def put(stand, body=BODY, path=PATH, **headers):
    assert stand("PUT", path, body=body, Content_Type="text/plain", **headers).status_int == 201


def test_a_filtered_get_has_no_length_and_etag(stand):
    put(stand)
    stand.set_policies(assignment(keyword="upper", stage=200))
    answer = stand("GET", PATH)
    assert (answer.status_int, answer.body) == (200, BODY.upper() + b"THE END")
    head = stand("HEAD", PATH)
    assert head.status_int == 200
    for one in (answer, head):
        assert not {"Etag", "Accept-Ranges", "Content-Range"} & set(one.headers)
        assert one.headers["Content-Type"] == "text/plain"
    assert head.headers.get("Content-Length") in (None, "0")
    hint = Upper.hints[0]
    assert (hint.size, hint.content_type, hint.name, hint.account) == (len(BODY), "text/plain", "o.txt", "AUTH_a")


@pytest.mark.parametrize("engine", [None, "zstd"])
def test_stored_transforms_are_undone_before_read_filters(stand, engine):
    if engine:
        stand.set_policies(assignment(keyword="compression", stage=300, params={"engine": engine}))
    put(stand)
    stand.set_policies(assignment("p.1", keyword="upper", stage=200), assignment("p.2", keyword="mark", stage=100))
    assert stand("GET", PATH).body == b"mark:" + BODY.upper() + b"THE END"


@pytest.mark.parametrize("value", ["bytes=0-9", "bytes=-5", "bytes=99999999-", "bytes=0-1,3-4", "bytes=x"])
@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_a_range_of_a_filtered_object_is_ignored(stand, value, method):
    put(stand)
    stand.set_policies(assignment(keyword="upper", stage=200))
    answer = stand(method, PATH, Range=value)
    assert (answer.status_int, answer.body) == (200, BODY.upper() + b"THE END" if method == "GET" else b"")
    assert not {"Content-Range", "Etag", "Accept-Ranges"} & set(answer.headers)


@pytest.mark.parametrize(
    ("conditions", "status"),
    [
        ({"If_None_Match": "{etag}"}, 304),
        ({"If_None_Match": "other"}, 200),
        ({"If_Match": "{etag}"}, 200),
        ({"If_Match": "other"}, 412),
        ({"If_Range": "other", "Range": "bytes=0-1"}, 200),
    ],
)
def test_conditions_speak_of_the_stored_object(stand, conditions, status):
    put(stand)
    stand.set_policies(assignment(keyword="upper", stage=200))
    etag = hashlib.md5(BODY).hexdigest()
    answer = stand("GET", PATH, **{name: value.format(etag=etag) for name, value in conditions.items()})
    assert answer.status_int == status
    if status == 200:
        assert answer.body == BODY.upper() + b"THE END"


def test_a_condition_of_the_policy_is_asked_of_the_stored_object(stand):
    put(stand)
    put(stand, b"short", "/v1/AUTH_a/c/short.txt")
    stand.set_policies(assignment(keyword="upper", stage=200, when=["size", ">", 100]))
    assert stand("GET", PATH).body.endswith(b"THE END")
    assert stand("GET", "/v1/AUTH_a/c/short.txt").body == b"short"
    assert stand("GET", "/v1/AUTH_a/c/short.txt", Range="bytes=1-2").body == b"ho"
    assert "Etag" not in stand("HEAD", PATH).headers
    assert "Etag" in stand("HEAD", "/v1/AUTH_a/c/short.txt").headers


def test_a_filter_without_its_request_header_costs_nothing(stand):
    put(stand)
    stand.swift.requests.clear()
    stand.set_policies(assignment(keyword="cut", stage=200))
    answer = stand("GET", PATH, Range="bytes=0-4", X_Other="x")
    assert (answer.status_int, answer.body) == (206, BODY[:5])
    assert len(stand.swift.requests) == 1
    assert "Etag" in stand("HEAD", PATH).headers


def test_a_filter_that_knows_what_it_needs_is_fed_no_more(stand):
    put(stand)
    stand.swift.requests.clear()
    stand.swift.piece = 10
    stand.set_policies(assignment(keyword="cut", stage=200))
    answer = stand("GET", PATH, X_Cut="5000+25")
    assert (answer.status_int, answer.body) == (200, BODY[5000:5025] + b".")
    assert [request[0] for request in stand.swift.requests] == ["HEAD", "GET"]
    assert stand.swift.requests[1][2] == f"bytes=5000-{len(BODY) - 1}"


@pytest.mark.parametrize("engine", [None, "zstd"])
@pytest.mark.parametrize(
    ("wish", "expected"), [("0+5", BODY[:5]), ("44000+100", BODY[44000:44100]), ("9999999+5", b"")]
)
def test_a_part_is_right_wherever_it_lies(stand, engine, wish, expected):
    if engine:
        stand.set_policies(assignment(keyword="compression", stage=300, params={"engine": engine}))
    put(stand)
    stand.set_policies(assignment(keyword="cut", stage=200))
    answer = stand("GET", PATH, X_Cut=wish)
    assert (answer.status_int, answer.body) == (200, expected + b".")


def test_an_empty_object_is_read_too(stand):
    put(stand, b"")
    stand.set_policies(assignment(keyword="cut", stage=200))
    assert stand("GET", PATH, X_Cut="0+5").body == b"."


@pytest.mark.parametrize("wish", ["x", "5+y", ""])
def test_an_invalid_filter_request_is_400_with_the_reason(stand, wish):
    put(stand)
    stand.set_policies(assignment(keyword="cut", stage=200))
    answer = stand("GET", PATH, X_Cut=wish)
    assert answer.status_int == 400
    assert b"expected start+length" in answer.body


@pytest.mark.parametrize(("error", "status"), [(BadParameter("no column"), 400), (FilterError("broken"), 503)])
@pytest.mark.parametrize("late", [0, 1])
def test_an_error_in_the_first_bytes_is_a_status(stand, monkeypatch, error, status, late):
    put(stand)
    stand.set_policies(assignment(keyword="upper", stage=200))

    class Failing(Stream):
        def feed(self, data):
            if late:
                return b""
            raise error

        def finish(self):
            raise error

    monkeypatch.setattr(Upper, "reader", lambda self, hint: Failing())
    answer = stand("GET", PATH)
    assert answer.status_int == status
    assert str(error).encode() in answer.body


def test_an_answer_without_output_for_long_starts_nevertheless(stand, monkeypatch):
    put(stand, b"x" * (read_pipeline.PATIENCE + 100_000))
    stand.set_policies(assignment(keyword="upper", stage=200))

    class Slow(Stream):
        def feed(self, data):
            return b""

        def finish(self):
            raise FilterError("too late")

    monkeypatch.setattr(Upper, "reader", lambda self, hint: Slow())
    status, _, body = Request.blank(PATH).call_application(stand.reads)
    assert status == "200 OK"
    with pytest.raises(FilterError):
        b"".join(body)
    body.close()


@pytest.mark.parametrize("status", [401, 404, 416, 500])
def test_requests_for_no_object_pass_unfiltered(stand, status):
    put(stand)
    stand.set_policies(assignment(keyword="upper", stage=200, when=["size", ">", 1]))
    stand.proxy.handler.app = Response(status=status)
    assert stand("GET", PATH).status_int == status


@pytest.mark.parametrize(
    ("query", "headers", "changed"),
    [
        ("", {}, True),
        ("?multipart-manifest=get", {}, True),
        ("?multipart-manifest=get", {"X_Static_Large_Object": "True"}, False),
        ("?part-number=1", {}, True),
        ("?part-number=1&x=%20y", {}, True),
        ("?symlink=get", {"X_Object_Sysmeta_Symlink_Target": "c/o"}, True),
    ],
)
def test_manifests_are_no_data_but_nothing_else_goes_past_a_filter(stand, query, headers, changed):
    put(stand, **headers)
    if "X_Static_Large_Object" in headers:
        stand.swift.objects[PATH].headers["X-Static-Large-Object"] = "True"
    stand.set_policies(assignment(keyword="upper", stage=200))
    assert stand("GET", PATH + query).body.endswith(b"THE END") is changed
    assert ("Etag" not in stand("HEAD", PATH + query).headers) is changed


def test_an_object_that_changes_after_it_was_looked_at_is_asked_for_anew(stand):
    put(stand)
    stand.set_policies(assignment(keyword="cut", stage=200))
    inner, seen = stand.proxy.handler.app, []

    def meddle(env, start_response):
        seen.append(env["REQUEST_METHOD"])
        if seen == ["HEAD", "GET"]:
            stand.swift.objects[PATH].body = BODY[::-1]
            stand.swift.objects[PATH].etag = "other"
        return inner(env, start_response)

    stand.proxy.handler.app = meddle
    assert stand("GET", PATH, X_Cut="10+10").body == BODY[::-1][10:20] + b"."
    assert seen == ["HEAD", "GET", "HEAD", "GET"]


def test_an_object_that_keeps_changing_is_a_503(stand):
    put(stand)
    stand.set_policies(assignment(keyword="cut", stage=200))
    inner = stand.proxy.handler.app

    def meddle(env, start_response):
        stand.swift.objects[PATH].etag += "x"
        return inner(env, start_response)

    stand.proxy.handler.app = meddle
    assert stand("GET", PATH, X_Cut="10+10").status_int == 503


def test_without_reads_in_the_pipeline_nothing_is_given_past_a_filter(stand):
    put(stand)
    stand.set_policies(assignment(keyword="upper", stage=200))
    answer = Request.blank(PATH).get_response(stand.proxy)
    assert answer.status_int == 503
    assert b"sluice-reads" in answer.body


@pytest.mark.parametrize(
    ("source", "covered", "status"),
    [
        ("SYM", (), 503),
        ("SLO", (), 503),
        ("DLO", ("mark",), 503),
        ("SLO", ("upper",), 200),
        ("SYM", ("upper", "mark"), 200),
        ("VW", (), 200),
        ("OV", (), 200),
    ],
)
def test_links_and_manifests_do_not_bypass_a_filter(stand, source, covered, status):
    put(stand)
    stand.set_policies(assignment("p.1", keyword="upper", stage=200), assignment("p.2", keyword="cut", stage=200))
    environ = {"swift.source": source, "swift.infocache": {COVERED_BY_READ_FILTERS: covered}}
    answer = Request.blank(PATH, environ=environ).get_response(stand.proxy)
    assert (answer.status_int, answer.body == BODY) == (status, status == 200)


@pytest.mark.parametrize("when", [True, ["size", "<", 5]])
def test_segment_requests_know_the_filters_of_the_whole_object(stand, when):
    put(stand)
    stand.set_policies(assignment(keyword="upper", stage=200, when=when))
    info = {}
    stand("GET", PATH, env={"swift.infocache": info})
    assert info[COVERED_BY_READ_FILTERS] == {"upper"}


def test_our_backend_headers_are_taken_off_requests_and_answers(stand):
    put(stand)
    stand.set_policies(assignment(keyword="upper", stage=200, place=STORAGE_NODE))
    stand("GET", PATH, X_Backend_Sluice_Read="x", X_Backend_Sluice_Refused="x")
    assert json.loads(stand.swift.headers[-1]["X-Backend-Sluice-Read"])["steps"][0]["f"] == "upper"
    stand.set_policies()
    stand("GET", PATH, X_Backend_Sluice_Read="x", X_Backend_Sluice_Refused="x")
    assert not [name for name in stand.swift.headers[-1] if "Sluice" in name]


def test_a_truncated_object_never_looks_complete(stand):
    put(stand)
    stand.set_policies(assignment(keyword="upper", stage=200))

    def short(env, start_response):
        start_response("200 OK", [("Content-Length", str(len(BODY))), ("Content-Type", "text/plain")])
        return [BODY[:1000], BODY[1000:2000]]

    stand.proxy.handler.app = short
    body = Request.blank(PATH).call_application(stand.reads)[2]
    with pytest.raises(CorruptData, match=f"ends `{len(BODY) - 2000}` bytes early"):
        b"".join(body)
    body.close()


def test_a_non_ascii_filter_header_reaches_the_filter_as_text(stand, monkeypatch):
    put(stand)
    stand.set_policies(assignment(keyword="cut", stage=200))
    answer = stand("GET", PATH, X_Cut="größe".encode().decode("latin-1"))
    assert answer.status_int == 400
    assert "`größe`".encode() in answer.body


def test_an_offer_longer_than_a_header_is_not_sent(stand):
    put(stand)
    stand.set_policies(assignment(keyword="cut", stage=200, place=STORAGE_NODE))
    assert stand("GET", PATH, X_Cut="0+5", X_Other="x" * 7000).body == BODY[:5] + b"."
    assert "X-Backend-Sluice-Read" not in stand.swift.headers[-1]


def test_a_pipeline_is_done_when_one_filter_is_done():
    class Enough(Stream):
        def feed(self, data):
            self.done = True
            return b""

    pipe = Pipe([Stream(), Enough(), Stream()])
    assert not pipe.done
    pipe.feed(b"x")
    assert pipe.done


def test_a_filter_that_is_done_stops_reading_the_object(stand):
    put(stand)
    stand.set_policies(assignment(keyword="cut", stage=200))
    inner, taken = stand.proxy.handler.app, []

    def counted(env, start_response):
        body = inner(env, start_response)

        class Taken:
            def __iter__(self):
                return ((taken.append(len(piece)), piece)[1] for piece in body)

            def close(self):
                body.close()

        return Taken()

    stand.swift.piece = 100
    stand.proxy.handler.app = counted
    assert stand("GET", PATH, X_Cut="0+150").body == BODY[:150] + b"."
    assert sum(taken) == 200
