"""Control characters of names never come into a log line, whoever formats it."""

import logging
import subprocess
import sys

import pytest

from sluice_core.logs import QuotingRecordFactory, one_line, start_logging
from sluice_core.options import OptionError

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


PROGRAM = r"""
import logging
from sluice_core.logs import start_logging
start_logging("info", "%(name)s: %(message)s")
logging.getLogger("proxy-server").info("GET /v1/AUTH_a/\0versions\0c/o")
logging.getLogger("sluice_rewriter").warning("object `%s`", "a\nb")
logging.getLogger("sluice_rewriter").debug("not wanted")
"""


def test_a_process_of_ours_quotes_what_libraries_say_too():
    ran = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, check=True)
    assert ran.stderr.decode().splitlines() == [
        r"proxy-server: GET /v1/AUTH_a/\x00versions\x00c/o",
        r"sluice_rewriter: object `a\nb`",
    ]
