"""A name with control characters in Swift's log, by its own logger and formatter."""

import logging
import socket

import pytest

from sluice_middleware.log import open_logger


@pytest.fixture
def swift_log(tmp_path):
    """A logger of a Sluice middleware, and the next line that it has written."""
    path = tmp_path / "log"
    standing = logging.getLogRecordFactory()
    logging.setLogRecordFactory(logging.LogRecord)  # as in a server of Swift's, independent of other tests
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listening:
        listening.bind(str(path))
        listening.settimeout(10)
        adapter = open_logger({"log_address": str(path)}, "sluice-test")
        yield adapter, lambda: listening.recv(65536).rstrip(b"\0\n")
        for handler in list(adapter.logger.handlers):
            adapter.logger.removeHandler(handler)
            handler.close()
    logging.setLogRecordFactory(standing)


def test_a_hidden_name_is_written_out_in_swift_s_log(swift_log):
    logger, read = swift_log
    logger.error("sluice: %s %s refused: %s", "GET", "/v1/AUTH_a/\0versions\0c/a\nb", "no such filter")
    line = read()
    assert rb"sluice: GET /v1/AUTH_a/\x00versions\x00c/a\nb refused: no such filter" in line
    assert not [sign for sign in line if sign < 32]


def test_a_traceback_is_one_line_of_swift_s_log_without_a_hidden_name(swift_log):
    logger, read = swift_log
    try:
        raise ValueError("no object \0versions\0c")
    except ValueError:
        logger.exception("sluice: filter failed")
    line = read()
    assert line.endswith(rb"#012ValueError: no object \x00versions\x00c")
    assert not [sign for sign in line if sign < 32]
