"""The host of request filters on the proxy: order, responses, bodies, and sub-requests."""

from typing import ClassVar

import pytest
from tests.support.middleware.request_filters import Counting, Upper, spy

from sluice_core.describe import FILTER, ActionInfo
from sluice_core.testing import assignment
from sluice_filters.api import Stream
from sluice_filters.testing.fake_filters import HeadedXor
from sluice_filters.visits import Headers, Reply
from sluice_middleware.swift.proxy_api import Response
from sluice_middleware.testing import ProxyStack

PATH = "/v1/AUTH_a/c/o"
BODY = b"the plain object, in plain words" * 100


@pytest.fixture
def first():
    return spy("first", 10)


@pytest.fixture
def second(first):
    made = spy("second", 20)
    made.log = first.log
    return made


@pytest.fixture
def stand(tmp_path, first, second):
    made = ProxyStack(tmp_path, first, second)
    made.set_policies(
        assignment("p.1", keyword="first", stage=10),
        assignment("p.2", keyword="second", stage=20),
    )
    yield made
    assert made.all_closed(), "an answer was left open"


def test_request_hooks_run_forward_and_response_hooks_in_reverse(stand, first):
    assert stand("PUT", body=BODY).status_int == 201
    assert first.log == [
        ("first", "request"),
        ("second", "request"),
        ("first", "body_in"),
        ("second", "body_in"),
        ("second", "response"),
        ("first", "response"),
        ("second", "end", True),
        ("first", "end", True),
    ]
    first.log.clear()
    assert stand("GET").body == BODY
    assert [event[:2] for event in first.log] == [
        ("first", "request"),
        ("second", "request"),
        ("second", "response"),
        ("second", "body_out"),
        ("first", "response"),
        ("first", "body_out"),
        ("second", "end"),
        ("first", "end"),
    ]


@pytest.mark.parametrize("method", ["GET", "HEAD", "PUT", "POST", "DELETE"])
def test_a_call_describes_the_request(stand, first, method):
    stand(method, "/v1/AUTH_a/c/caf%C3%A9/x?a=b", body=b"abc", Content_Type="text/plain", X_Object_Meta_A="1")
    call = first.calls[0]
    assert (call.place, call.method, call.query) == ("proxy", method, "a=b")
    assert (call.account, call.container, call.object) == ("AUTH_a", "c", "café/x")
    assert call.size == (3 if method == "PUT" else None)
    assert call.content_type == "text/plain"
    assert call.headers["x-object-meta-a"] == "1"


def test_a_visit_may_change_client_headers_but_not_system_headers(stand, first, second):
    def change(call):
        assert "X-Object-Sysmeta-Secret" not in call.headers
        call.headers["X-Object-Meta-Colour"] = "blue"
        call.headers["X-Backend-Evil"] = call.headers["X-Object-Sysmeta-Sluice-Chain"] = "x"
        call.headers["Content-Type"] = "text/x-changed"
        del call.headers["X-Object-Meta-Old"]

    first.acts["request"] = change
    second.acts["request"] = lambda call: call.headers.__setitem__("X-Object-Meta-Seen", call.headers["content-type"])
    stand("PUT", body=b"x", X_Object_Meta_Old="1", X_Object_Sysmeta_Secret="kept", Content_Type="text/plain")
    stored = stand.swift.objects[PATH].headers
    assert stored["X-Object-Meta-Colour"] == "blue"
    assert stored["X-Object-Meta-Seen"] == stored["Content-Type"] == "text/x-changed"
    assert stored["X-Object-Sysmeta-Secret"] == "kept"
    assert "X-Object-Meta-Old" not in stored
    assert "X-Backend-Evil" not in stand.swift.headers[-1]
    assert "X-Object-Sysmeta-Sluice-Chain" not in stored


def test_a_visit_that_replies_stops_the_request(stand, first, second):
    second.acts["request"] = lambda call: Reply("203 Here You Are", Headers({"X-By": "second"}), [b"mine"])
    answer = stand("GET")
    assert (answer.status, answer.body, answer.headers["X-By"]) == ("203 Here You Are", b"mine", "second")
    assert stand.swift.requests == []
    assert first.log == [
        ("first", "request"),
        ("second", "request"),
        ("first", "response"),
        ("second", "end", True),
        ("first", "end", True),
    ]


def test_the_first_reply_skips_later_filters(stand, first, second):
    first.acts["request"] = lambda call: Reply("200 OK", Headers(), [b"mine"])
    assert stand("GET").body == b"mine"
    assert second.calls == []


def test_a_filter_that_returns_no_visit_is_not_called_again(stand, first):
    first.acts["visit"] = lambda call: None
    stand("GET")
    assert {event[0] for event in first.log} == {"second"}


def test_visit_streams_see_plain_bytes(stand, first, second):
    stand.set_policies(
        assignment("p.1", keyword="first", stage=10),
        assignment("p.2", keyword="second", stage=20),
        assignment("p.3", keyword="compression", stage=300, params={"min_size": 0}),
    )
    body = BODY * 100
    first.acts["body_in"] = lambda call: Counting(first.log, "in")
    first.acts["body_out"] = lambda call, reply: Counting(first.log, "out")
    assert stand("PUT", body=body).status_int == 201
    assert len(stand.swift.objects[PATH].body) < len(body)
    assert stand("GET").body == body
    for name in ("in", "out"):
        assert sum(event[2] for event in first.log if event[:2] == (name, "bytes")) == len(body)
        assert first.log.count((name, "finish")) == 1


def test_a_visit_that_changes_bodies_changes_what_is_stored_and_its_etag(tmp_path):
    rewriter = spy("rewriter", 10, changes_content=True)
    stand = ProxyStack(tmp_path, rewriter)
    stand.set_policies(assignment(keyword="rewriter", stage=10))
    rewriter.acts["body_in"] = lambda call: Upper()
    put = stand("PUT", body=BODY)
    assert put.status_int == 201
    assert stand.swift.objects[PATH].body == BODY.upper()
    assert put.headers["Etag"] == stand.swift.objects[PATH].etag == stand("HEAD").headers["Etag"].strip('"')
    rewriter.acts["body_out"] = lambda call, reply: Stream() if reply.code == 200 else None
    answer = stand("GET")
    assert answer.body == BODY.upper()
    assert "Etag" not in answer.headers


def test_a_range_and_its_headers_are_what_a_visit_sees_of_it(stand, first):
    stand("PUT", body=BODY)
    seen = []
    first.acts["body_out"] = lambda call, reply: seen.append((reply.code, reply.headers["Content-Range"]))
    assert stand("GET", Range="bytes=4-8").body == BODY[4:9]
    assert seen == [(206, f"bytes 4-8/{len(BODY)}")]


@pytest.mark.parametrize("method", ["HEAD", "DELETE", "POST"])
@pytest.mark.parametrize("there", [True, False])
def test_answers_without_a_body_have_no_stream_and_end_complete(stand, first, method, there):
    if there:
        stand("PUT", body=BODY)
        first.log.clear()
    stand(method)
    assert ("first", "body_out") not in first.log
    assert first.log[-1] == ("first", "end", True)
    assert [event[:2] for event in first.log].count(("first", "end")) == 1


@pytest.mark.parametrize(("acl", "reply"), [("allowed", None), ("other", 403)])
def test_authorize_asks_swift_with_the_acl_of_the_container(stand, first, acl, reply):
    asked = []

    def authorize(request):
        asked.append(request.acl)
        return None if request.acl == "allowed" else Response(status=403)

    info = {"status": 204, "read_acl": acl, "write_acl": None, "storage_policy": "0"}
    env = {"swift.authorize": authorize, "swift.infocache": {"container/AUTH_a/c": info}}
    seen = []
    first.acts["request"] = lambda call: seen.append(call.authorize())
    stand("GET", env=env)
    assert asked[:2] == [None, acl]
    assert [one and one.code for one in seen] == [reply]


def test_a_request_that_needs_no_asking_is_let_in(stand, first):
    seen = []
    first.acts["request"] = lambda call: seen.append(call.authorize())
    stand("GET")
    assert seen == [None]


def test_a_visit_sends_requests_through_those_behind_it_or_to_what_is_stored(stand, first, second):
    stand.set_policies(
        assignment("p.1", keyword="first", stage=10),
        assignment("p.2", keyword="second", stage=20),
        assignment("p.3", keyword="compression", stage=300, params={"min_size": 0}),
    )
    stand("PUT", body=BODY)
    first.log.clear()
    found = {}

    def ask(call):
        plain, raw = call.send("GET"), call.send("GET", stored=True)
        found["plain"] = b"".join(plain.body)
        found["raw"] = b"".join(raw.body)
        found["sysmeta"] = raw.headers["X-Object-Sysmeta-Sluice-Chain"]
        for reply in (plain, raw):
            reply.body.close()

    first.acts["request"] = ask
    stand("HEAD")
    assert found["plain"] == BODY
    assert found["raw"] == stand.swift.objects[PATH].body != BODY
    assert found["sysmeta"]
    assert [event[0] for event in first.log if event[1] == "request"] == ["first", "second", "second"]


def test_a_request_of_a_visits_own_is_let_in_whoever_the_client_is(stand, first):
    stand("PUT", "/v1/AUTH_a/other/x", body=b"theirs")
    env = {"swift.authorize": lambda request: Response(status=403)}
    seen = []

    def ask(call):
        reply = call.send("GET", ("AUTH_a", "other", "x"))
        seen.append((reply.code, b"".join(reply.body)))
        reply.body.close()
        made = call.send("PUT", ("AUTH_a", "made", "é"), {"Content-Type": "a/b"}, [b"ab", b"", b"c"], query="x=y")
        seen.append(made.code)
        made.body.close()

    first.acts["request"] = ask
    assert stand("GET", env=env).status_int == 403
    assert seen == [(200, b"theirs"), 201]
    stored = stand.swift.objects["/v1/AUTH_a/made/\xc3\xa9"]
    assert (stored.body, stored.headers["Content-Type"]) == (b"abc", "a/b")


def test_recursive_sub_requests_terminate(stand, first, second):
    def ask(call):
        reply = call.send("GET", ("AUTH_a", "c", "deeper"))
        assert reply.code == 404
        reply.body.close()

    first.acts["request"] = second.acts["request"] = ask
    stand("GET")
    assert len(stand.swift.requests) == 4


def test_a_request_that_is_refused_behind_a_visit_is_a_reply_to_it(stand, first):
    stand.set_policies(
        assignment("p.1", keyword="first", stage=10), assignment("p.2", keyword="nosuch", stage=20, when=["tag", ["x"]])
    )
    seen = []
    first.acts["request"] = lambda call: seen.append(call.send("PUT", body=[b"x"], headers={"X-Object-Meta-Tags": "x"}))
    stand("GET")
    assert seen[0].code == 503
    assert b"`nosuch`" in b"".join(seen[0].body)


@pytest.mark.parametrize(("keyword", "protected"), [("encryption", True), ("compression", False)])
def test_a_visit_knows_whether_the_object_is_protected(tmp_path, first, keyword, protected):
    class Hiding(HeadedXor):
        info: ClassVar[ActionInfo] = ActionInfo(
            keyword=keyword, kind=FILTER, help="x", changes_content=True, reversible=True, protective=protected
        )

    stand = ProxyStack(tmp_path, first, Hiding)
    stand.set_policies(assignment("p.1", keyword="first", stage=10), assignment("p.2", keyword=keyword, stage=500))
    seen = []
    first.acts["request"] = lambda call: seen.append(call.protected)
    first.acts["response"] = lambda call, reply: (seen.append(call.protected), reply)[1]
    stand("PUT", body=BODY)
    stand.set_policies(assignment("p.1", keyword="first", stage=10))
    stand("GET")
    assert seen == [protected, protected, False, protected]


def test_without_a_policy_no_request_filter_is_called(stand, first):
    stand.set_policies(assignment("p.1", keyword="first", stage=10, when=["method", ["PUT"]]))
    stand("GET")
    assert first.calls == []
    stand("PUT", body=b"x")
    assert len(first.calls) == 1


def test_an_answer_of_swifts_that_is_an_error_is_an_answer_like_any_other(stand, first):
    stand.proxy.handler.app = Response(status=409)
    assert stand("GET").status_int == 409
    assert ("first", "response") in first.log
