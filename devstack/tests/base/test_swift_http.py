"""The small Swift client leaves no connection open, however its threads end."""

import gc
import socket
import threading

from sluice_aio.base.swift_http import SwiftHttp


def serve(listening):
    """Answer two connections, one after the other, each for as long as the client keeps it."""
    for _ in range(2):
        connection, _ = listening.accept()
        with connection, connection.makefile("rb") as reading:
            while line := reading.readline():
                if line == b"\r\n":
                    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")


def test_the_connection_of_a_thread_that_ended_is_closed(recwarn):
    """Else the server would never serve the second one."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        serving = threading.Thread(target=serve, args=(listening,))
        serving.start()
        client = SwiftHttp(f"http://127.0.0.1:{listening.getsockname()[1]}")
        answers = []
        try:
            asking = threading.Thread(target=lambda: answers.append(client.raw("GET", "/", {})))
            asking.start()
            asking.join()
            gc.collect()
            assert client.raw("GET", "/", {}).status == answers[0].status == 200
        finally:
            client.close()
            serving.join()
    assert not [str(one.message) for one in recwarn if issubclass(one.category, ResourceWarning)]


def test_a_connection_that_the_server_closed_is_not_used_again():
    with socket.create_server(("127.0.0.1", 0)) as listening:
        hung_up = threading.Event()

        def serve_once_each():
            for _ in range(2):
                connection, _ = listening.accept()
                with connection, connection.makefile("rb") as reading:
                    while reading.readline() != b"\r\n":
                        pass
                    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
                hung_up.set()

        serving = threading.Thread(target=serve_once_each)
        serving.start()
        client = SwiftHttp(f"http://127.0.0.1:{listening.getsockname()[1]}")
        try:
            assert client.raw("GET", "/", {}).status == 200
            assert hung_up.wait(10)
            assert client.raw("PUT", "/", {}).status == 200
        finally:
            client.close()
            serving.join()
