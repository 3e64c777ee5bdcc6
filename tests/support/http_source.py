"""An HTTP server on the loopback with a test's valid or invalid responses: a source of the template `url`."""

import socketserver
import threading
from contextlib import contextmanager, suppress


class HttpSource(socketserver.ThreadingTCPServer):
    """Responds by ``answers``: path → a function that writes to a socket."""

    daemon_threads = True
    block_on_close = False

    def __init__(self):
        super().__init__(("127.0.0.1", 0), _Handler)
        self.answers = {}
        self.requests = []
        self.stopped = threading.Event()

    def url(self, path):
        return f"http://127.0.0.1:{self.server_address[1]}/{path}"

    def methods(self):
        return [head.split()[0] for head in self.requests]


class _Handler(socketserver.StreamRequestHandler):
    def handle(self):
        lines = []
        while (line := self.rfile.readline().decode()).strip():
            lines.append(line.strip())
        self.server.requests.append("\n".join(lines))
        method, path, _ = lines[0].split()
        with suppress(OSError):  # the client may have disconnected
            self.server.answers[path.partition("?")[0].strip("/")](self.connection, method)


def page(content, length=None, status="200 OK", more=""):
    """A response; ``length``: its Content-Length."""
    head = f"HTTP/1.1 {status}\r\nContent-Length: {len(content) if length is None else length}\r\n{more}\r\n".encode()
    return lambda connection, method: connection.sendall(head if method == "HEAD" else head + content)


def redirect(location):
    """A redirect."""
    return page(b"", status="302 Found", more=f"Location: {location}\r\n")


def chunked(pieces):
    """A chunked response without an end."""

    def send(connection, method):
        connection.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        for piece in pieces if method == "GET" else ():
            connection.sendall(b"%x\r\n%s\r\n" % (len(piece), piece))

    return send


def endless(source):
    """A response that continues until the source stops."""

    def send(connection, method):
        connection.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        while not source.stopped.is_set():
            connection.sendall(b"%x\r\n%s\r\n" % (1 << 16, bytes(1 << 16)))

    return send


def silent(source, begun=b""):
    """A response that stops after ``begun``, on a connection that stays open until the source stops."""

    def send(connection, method):
        connection.sendall(begun)
        source.stopped.wait()

    return send


@contextmanager
def http_source():
    """A server that runs in a thread."""
    with HttpSource() as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield server
        finally:
            server.stopped.set()
            server.shutdown()
            thread.join()
