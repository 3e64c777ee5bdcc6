"""Calls to services with Keystone's tokens."""

import contextlib
import json
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from sluice_aio.keystone.http import KeystoneHttp
from sluice_core.errors import PeerError

UNAVAILABLE = (503, b"503 Service Unavailable\n\nThe Keystone service is temporarily unavailable.\n\n   ")


@contextlib.contextmanager
def service(*answers):
    """A service with these responses, one after the other; a client of it."""
    left = list(answers)

    class Handler(BaseHTTPRequestHandler):
        """Sends one response."""

        def do_GET(self):
            status, body = left.pop(0)
            self.send_response(status)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            """Do not log."""

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield KeystoneHttp(f"http://127.0.0.1:{server.server_port}/v3", name="cinder")
        finally:
            server.shutdown()
            thread.join()
    assert not left


def test_a_service_that_cannot_ask_keystone_yet_is_asked_again():
    with service(UNAVAILABLE, UNAVAILABLE, (200, json.dumps({"volume_types": []}).encode())) as cinder:
        assert cinder.call("GET", "/types") == {"volume_types": []}


def test_a_refusal_is_told_with_the_service_s_words():
    with service((404, b"404 Not Found\n\nno such path")) as cinder, pytest.raises(PeerError) as error:
        cinder.call("GET", "/types")
    assert str(error.value) == "cinder: GET /types: status 404: 404 Not Found\n\nno such path"
