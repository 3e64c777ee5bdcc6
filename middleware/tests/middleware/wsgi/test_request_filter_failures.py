"""The host of request filters when a filter fails, a client disconnects or Swift does not read the body."""

import io
import logging

import pytest
from tests.support.middleware.request_filters import Breaking, spy

from sluice_core.testing import assignment
from sluice_filters.api import FilterError
from sluice_middleware.swift.proxy_api import Request, Response
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


POINTS = ["request", "body_in", "response", "body_out"]


@pytest.mark.parametrize("point", POINTS)
@pytest.mark.parametrize("who", ["first", "second"])
@pytest.mark.parametrize("error", [FilterError("no luck today"), ZeroDivisionError("oops")])
def test_a_failing_visit_refuses_the_request_and_all_visits_end(stand, first, second, who, point, error, caplog):
    stand("PUT", body=BODY)
    first.log.clear()
    method = "PUT" if point == "body_in" else "GET"

    def fail(call, *args):
        raise error

    (first if who == "first" else second).acts[point] = fail
    with caplog.at_level(logging.ERROR):
        answer = stand(method, body=b"new" if method == "PUT" else None)
    assert answer.status_int == 503
    if isinstance(error, FilterError):
        assert b"no luck today" in answer.body
    else:
        assert f"filter `{who}` failed: ZeroDivisionError".encode() in answer.body
        assert b"oops" not in answer.body
        assert any(record.exc_info for record in caplog.records)
    ends = [event for event in first.log if event[1] == "end"]
    asked = ["first"] if (who, point) == ("first", "request") else ["second", "first"]
    assert ends == [(name, "end", False) for name in asked]
    assert stand.swift.objects[PATH].body == BODY


def test_a_filter_that_cannot_even_make_its_visit_refuses_the_request(stand, first):
    first.acts["visit"] = lambda call: 1 / 0
    assert stand("GET").status_int == 503


@pytest.mark.parametrize("error", [FilterError("no luck today"), KeyError("oops")])
def test_a_stream_that_fails_on_the_way_in_stores_nothing(stand, first, error):
    first.acts["body_in"] = lambda call: Breaking(error)
    answer = stand("PUT", body=BODY)
    assert answer.status_int == 503
    assert PATH not in stand.swift.objects
    assert [event[:2] for event in first.log].count(("first", "end")) == 1


@pytest.mark.parametrize("error", [FilterError("no luck today"), KeyError("oops")])
def test_a_stream_that_fails_on_the_way_out_cuts_the_answer(stand, first, error):
    stand.swift.piece = 100
    stand("PUT", body=BODY)
    first.log.clear()
    first.acts["body_out"] = lambda call, reply: Breaking(error, 250)
    response = Request.blank(PATH).call_application(stand.reads)[2]
    with pytest.raises(FilterError):
        b"".join(response)
    response.close()
    assert [event for event in first.log if event[1] == "end"] == [("second", "end", False), ("first", "end", False)]


def test_a_failure_in_end_is_logged(stand, first, second, caplog):
    for made, error in ((first, FilterError("late")), (second, ValueError("late"))):

        def fail(call, error=error):
            raise error

        made.acts["end"] = fail
    with caplog.at_level(logging.ERROR):
        assert stand("PUT", body=BODY).status_int == 201
    assert len(caplog.records) == 2
    assert ("first", "end", True) in first.log


def test_a_client_disconnect_ends_incomplete(stand, first):
    stand.swift.piece = 100
    stand("PUT", body=BODY)
    first.log.clear()
    response = Request.blank(PATH).call_application(stand.reads)[2]
    assert next(iter(response))
    response.close()
    response.close()
    assert [event for event in first.log if event[1] == "end"] == [("second", "end", False), ("first", "end", False)]


@pytest.mark.parametrize("sent", [0, 10])
def test_an_interrupted_upload_ends_incomplete(stand, first, sent):
    env = Request.blank(PATH, method="PUT").environ
    env |= {"wsgi.input": io.BytesIO(BODY[:sent]), "CONTENT_LENGTH": str(len(BODY))}
    assert stand.answer(env).status_int == 499
    assert first.log[-1] == ("first", "end", False)


def test_an_unread_body_ends_incomplete(stand, first):
    denied = {"swift.authorize": lambda request: Response(status=403)}
    assert stand("PUT", body=BODY, env=denied).status_int == 403
    assert first.log[-1] == ("first", "end", False)


def test_an_application_that_raises_ends_the_visits_too(stand, first):
    def broken(env, start_response):
        raise OSError("gone")

    stand.proxy.handler.app = broken
    with pytest.raises(OSError, match="gone"):
        Request.blank(PATH).call_application(stand.reads)
    assert first.log[-1] == ("first", "end", False)
