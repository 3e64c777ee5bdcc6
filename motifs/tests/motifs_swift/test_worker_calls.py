"""Calls of proxy workers on their connection, and what the log says of them."""

import socket

from sluice_core.process.logs import TextFormatter
from sluice_middleware.motifs.daemon_protocol import OPEN, WorkerCall, send_frame
from sluice_motifs_swift.worker_calls import WorkerServer


class Broken:
    """Has a bug."""

    def serve(self, call, connection):
        raise ZeroDivisionError(call.item)


def test_a_call_logs_with_swift_s_id_of_its_request(caplog):
    caplog.handler.setFormatter(TextFormatter("%(levelname)s:%(context)s %(message)s"))
    ours, theirs = socket.socketpair()
    with theirs:
        send_frame(theirs, WorkerCall(OPEN, "a/c/o", request="tx0123").encode())
        WorkerServer("", Broken())._serve(ours)
    assert caplog.text.startswith("ERROR: [tx0123] a call of a proxy worker failed\n")


def test_what_is_no_call_is_logged_and_not_answered(caplog):
    ours, theirs = socket.socketpair()
    with theirs:
        send_frame(theirs, b"nonsense")
        WorkerServer("", Broken())._serve(ours)
        assert theirs.recv(1) == b""
    assert "a call of a proxy worker is not understood" in caplog.text
