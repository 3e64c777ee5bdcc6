"""The small Swift client leaves nothing open, however its threads end."""

import gc
import http.server
import threading

from sluice_aio.swift_http import SwiftHttp


class Kept(http.server.BaseHTTPRequestHandler):
    """Answers and keeps the connection."""

    protocol_version = "HTTP/1.1"

    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_):
        """Nothing to say."""


def test_the_connection_of_a_thread_that_ended_is_closed(recwarn):
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Kept)
    server.daemon_threads = True
    serving = threading.Thread(target=server.serve_forever)
    serving.start()
    client = SwiftHttp(f"http://127.0.0.1:{server.server_address[1]}")
    answers = []
    try:
        asking = threading.Thread(target=lambda: answers.append(client.raw("GET", "/", {})))
        asking.start()
        asking.join()
        gc.collect()
        assert client.raw("GET", "/", {}).status == answers[0].status == 200
    finally:
        client.close()
        server.shutdown()
        serving.join()
        server.server_close()
    assert not [str(one.message) for one in recwarn if issubclass(one.category, ResourceWarning)]
