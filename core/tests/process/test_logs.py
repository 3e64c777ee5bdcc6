"""Control characters of names never appear in a log line, in any formatter."""

import json
import logging
import subprocess
import sys
import threading

import pytest

from sluice_core.options import OptionError
from sluice_core.process.logs import (
    JsonFormatter,
    QuotingRecordFactory,
    TextFormatter,
    current_request,
    log_fields,
    one_line,
    request_id,
    start_logging,
    with_log_fields,
)

HIDDEN = "AUTH_a/\0versions\0photos/a\nb\x1b[31m\u2028\x9fc\x7f"
WRITTEN = r"AUTH_a/\x00versions\x00photos/a\nb\x1b[31m\u2028\x9fc\x7f"


def test_a_name_is_written_out_and_ordinary_letters_stay():
    assert one_line(HIDDEN) == WRITTEN
    assert one_line("Ärger/写真 `x`\\0") == "Ärger/写真 `x`\\0"


def record(name, message, *arguments, error=None, prefix="sluice"):
    exc_info = (type(error), error, error.__traceback__) if error else None
    return QuotingRecordFactory(prefix)(name, logging.WARNING, __file__, 1, message, arguments, exc_info)


def test_a_message_is_one_line():
    found = record("sluice_motifs.leases", "the lease of `%s` is lost", HIDDEN)
    assert found.getMessage() == f"the lease of `{WRITTEN}` is lost"


def test_a_message_without_control_characters_keeps_its_arguments():
    found = record("sluice_agent", "node `%s` has %d workers", "n1", 3)
    assert (found.msg, found.args) == ("node `%s` has %d workers", ("n1", 3))


def test_a_traceback_keeps_its_lines_and_no_other_control_character():
    found = record("sluice_rewriter", "object `%s`", "x", error=ValueError(f"no such object {HIDDEN}"))
    assert logging.Formatter().format(found).splitlines()[-2:] == [
        r"ValueError: no such object AUTH_a/\x00versions\x00photos/a",
        r"b\x1b[31m\u2028\x9fc\x7f",
    ]


@pytest.mark.parametrize(
    ("name", "message", "quoted"),
    [
        ("sluice", "GET %s", True),
        ("sluice_middleware.motifs", "GET %s", True),
        ("object-server", "sluice: GET %s", True),
        ("object-server", "GET %s", False),
    ],
)
def test_in_swift_s_servers_only_our_records_are_quoted(name, message, quoted):
    assert ("\0" not in record(name, message, HIDDEN).getMessage()) is quoted


def test_arguments_that_do_not_fit_are_left_to_the_handler():
    found = record("sluice", "%d of %d", "\0")
    assert (found.msg, found.args) == ("%d of %d", ("\0",))


def test_an_unknown_level_is_refused():
    with pytest.raises(OptionError, match="`log_level` is `loud`, expected debug, info, warning or error"):
        start_logging("loud")


def test_an_unknown_format_is_refused():
    with pytest.raises(OptionError, match="`log_format` is `xml`, expected text or json"):
        start_logging("info", "xml")


PROGRAM = r"""
import logging, sys
from sluice_core.process.logs import log_fields, start_logging
start_logging("info", sys.argv[1], "%(name)s:%(context)s %(message)s")
logging.getLogger("proxy-server").info("GET /v1/AUTH_a/\0versions\0c/o")
logging.getLogger("sluice_rewriter").warning("object `%s`", "a\nb")
logging.getLogger("sluice_rewriter").debug("not wanted")
with log_fields(rewrite="r1"):
    try:
        {}["a\nb"]
    except KeyError:
        logging.getLogger("sluice_rewriter").exception("a bug")
"""


def ran(log_format):
    return subprocess.run([sys.executable, "-c", PROGRAM, log_format], capture_output=True, check=True, text=True)


def test_a_process_of_ours_quotes_what_libraries_say_too():
    lines = ran("text").stderr.splitlines()
    assert lines[:3] == [
        r"proxy-server: GET /v1/AUTH_a/\x00versions\x00c/o",
        r"sluice_rewriter: object `a\nb`",
        "sluice_rewriter: [r1] a bug",
    ]
    assert lines[-1] == r"KeyError: 'a\nb'"


def test_a_json_log_has_one_object_per_record_with_what_was_worked_at_and_the_exception():
    first, second, third = map(json.loads, ran("json").stderr.splitlines())
    assert (first["logger"], first["level"], first["message"]) == (
        "proxy-server",
        "info",
        r"GET /v1/AUTH_a/\x00versions\x00c/o",
    )
    assert second["time"].endswith("+00:00")
    assert "rewrite" not in second
    assert (third["message"], third["rewrite"]) == ("a bug", "r1")
    assert third["traceback"].splitlines()[-1] == r"KeyError: 'a\nb'"


GIVEN = "req-01234567-89ab-cdef-0123-456789abcdef"


@pytest.mark.parametrize(
    "given_id", ["", "x", "req-", GIVEN.upper(), GIVEN + "0", f"{GIVEN}\r\nSet-Cookie: a", "req-" + "0" * 36]
)
def test_an_invalid_request_id_is_replaced(given_id):
    made = request_id(given_id)
    assert made != given_id
    assert request_id(made) == made


def test_a_record_carries_the_fields_of_the_blocks_around_it():
    plain = logging.LogRecord("sluice.x", logging.INFO, __file__, 1, "said", (), None)
    with log_fields(request=GIVEN):
        with log_fields(operation="o1"):
            assert f"sluice.x: [{GIVEN} o1] said" in TextFormatter().format(plain)
            said = json.loads(JsonFormatter().format(plain))
        assert current_request() == GIVEN
        assert f"sluice.x: [{GIVEN}] said" in TextFormatter().format(plain)
    assert (said["request"], said["operation"]) == (GIVEN, "o1")
    assert "sluice.x: said" in TextFormatter().format(plain)
    assert current_request() == ""


def shown():
    return TextFormatter("%(name)s:%(context)s %(message)s").format(
        logging.LogRecord("sluice.x", logging.INFO, __file__, 1, "said", (), None)
    )


def in_a_thread(function):
    found = []
    thread = threading.Thread(target=lambda: found.append(function()))
    thread.start()
    thread.join()
    return found[0]


def test_a_thread_has_the_fields_that_it_is_given():
    with log_fields(request=GIVEN, operation="o1"):
        given = with_log_fields(shown)
        assert in_a_thread(shown) == "sluice.x: said"
    assert in_a_thread(given) == f"sluice.x: [{GIVEN} o1] said"
    assert shown() == "sluice.x: said"


def test_without_fields_a_function_stays_what_it_is():
    assert with_log_fields(shown) is shown


def test_a_field_without_a_value_is_left_out():
    with log_fields(request=""):
        assert shown() == "sluice.x: said"


def test_a_field_is_part_of_one_line():
    with log_fields(request="a\nb"):
        assert shown() == r"sluice.x: [a\nb] said"
