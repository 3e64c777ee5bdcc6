"""The log of a request: enough to find it, without secrets, in one line for any input."""

import json
import logging
import logging.config
import sys
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluice_controller.app.checks import faults
from sluice_controller.app.logs import LINE, logging_settings
from sluice_core.process.logs import JSON, TEXT, JsonFormatter, TextFormatter, current_request, log_fields

GIVEN = "req-01234567-89ab-cdef-0123-456789abcdef"


@pytest.fixture
def access(api, caplog):
    """The last record of a request."""
    caplog.set_level(logging.INFO, "sluice_controller.requests")
    return lambda: [one for one in caplog.records if one.name == "sluice_controller.requests"][-1]


def test_one_log_record_describes_a_request(api, create, access):
    made = create("FOR TENANT AUTH_a DO SET noop")
    answer = api.get(f"/policies/{made['id']}")
    said = access().access
    assert said.pop("ms") >= 0
    assert said == {
        "method": "GET",
        "route": "/policies/{policy_id}",
        "path": f"/policies/{made['id']}",
        "status": 200,
        "identity": "admin",
        "request": answer.headers["X-Request-Id"],
    }


def test_the_log_holds_no_token_body_or_query(api, access):
    api.post("/policies?wait=0&secret=1", {"policy": "FOR TENANT hidden DO SET nothing"}, format="json")
    api.get("/policies", headers={"X-Auth-Token": "a-wrong-secret"})
    for formatter in (TextFormatter(), JsonFormatter()):
        assert "secret" not in formatter.format(access())
    assert access().access["identity"] == ""


def test_a_request_keeps_the_id_that_another_service_gave_it(api, access):
    answer = api.get("/health", headers={"X-Openstack-Request-Id": GIVEN})
    assert answer.headers["X-Request-Id"] == answer.headers["X-Openstack-Request-Id"] == GIVEN
    assert access().access["request"] == GIVEN
    assert current_request() == "", "what comes next has nothing to do with it"


def test_an_id_from_nobody_known_is_replaced(api, access):
    """Without that, callers without a token could write ids of other requests into the log."""
    for token in (None, "a-wrong-token"):
        api.defaults.pop("HTTP_X_AUTH_TOKEN", None)
        given = {"X-Openstack-Request-Id": GIVEN} | ({"X-Auth-Token": token} if token else {})
        answer = api.get("/health", headers=given)
        assert answer.headers["X-Request-Id"] != GIVEN
        assert access().access["request"] == answer.headers["X-Request-Id"]


def record(message, *args, **more):
    return logging.LogRecord("sluice.x", logging.INFO, __file__, 1, message, args, more.pop("exc_info", None))


@given(st.text(max_size=40))
def test_a_log_record_is_one_line(text):
    for formatter in (TextFormatter(), JsonFormatter()):
        assert len(formatter.format(record("said %s", text)).splitlines()) == 1
    assert json.loads(JsonFormatter().format(record("said %s", text)))["message"] == f"said {text}"


def test_a_record_made_while_a_request_is_served_carries_its_id():
    with log_fields(request=GIVEN):
        assert f"[{GIVEN}]" in TextFormatter().format(record("x"))
        assert json.loads(JsonFormatter().format(record("x")))["request"] == GIVEN
    assert GIVEN not in TextFormatter().format(record("x"))


def test_a_json_record_holds_the_traceback():
    try:
        raise ZeroDivisionError("why")
    except ZeroDivisionError:
        said = json.loads(JsonFormatter().format(record("x", exc_info=sys.exc_info())))
    assert "ZeroDivisionError: why" in said["traceback"]


@pytest.mark.parametrize("log_format", [TEXT, JSON, LINE])
def test_the_settings_can_be_used(log_format):
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    try:
        logging.config.dictConfig(logging_settings(log_format, "info"))
        expected = JsonFormatter if log_format == JSON else TextFormatter
        assert isinstance(root.handlers[-1].formatter, expected)
    finally:
        root.handlers[:] = handlers
        root.setLevel(level)


def test_an_unknown_log_format_is_refused_at_start(config):
    found = list(faults(replace(config, log_format="xml")))
    assert [(one.id, "text, json" in one.msg) for one in found] == [("sluice.E021", True)]
