"""Input that is no HTTP request, and errors while Redis is unreachable: refused with Sluice's texts, no secrets."""

import socket

import pytest

pytestmark = pytest.mark.usefixtures("unlogged")

LINES = {
    "a line that is too long": (b"GET /" + b"x" * 9000 + b" HTTP/1.1\r\nHost: x\r\n\r\n", 414),
    "a header that is too long": (b"GET /nodes HTTP/1.1\r\nX-Auth-Token: " + b"x" * 9000 + b"\r\n\r\n", 431),
    "too many headers": (b"GET /nodes HTTP/1.1\r\n" + b"A: b\r\n" * 200 + b"\r\n", 431),
    "a header without a colon": (b"GET /nodes HTTP/1.1\r\nX-Auth-Token TOKEN\r\n\r\n", 400),
    "a header with NUL": (b"GET /nodes HTTP/1.1\r\nX-Auth-Token: TOKEN\x00\r\n\r\n", 400),
    "a header with a blank in its name": (b"GET /nodes HTTP/1.1\r\nX-Auth Token: TOKEN\r\n\r\n", 400),
    "no version": (b"GET /nodes?TOKEN\r\n\r\n", 400),
    "another version": (b"GET /nodes?TOKEN HTTP/9.9\r\n\r\n", 400),
    "a method that is none": (b"G\x00T /nodes?TOKEN HTTP/1.1\r\n\r\n", 400),
    "not HTTP": (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03TOKEN\r\n\r\n", 400),
}


@pytest.mark.parametrize("fault", LINES)
def test_what_is_no_request_is_refused_in_our_words(lone_api, fault):
    raw, status = LINES[fault]
    before = lone_api.dump()
    answer = lone_api.speak(raw.replace(b"TOKEN", lone_api.token.encode()))
    assert answer.status == status, answer.body
    lone_api.look_at(answer, fault)
    assert lone_api.dump() == before


def test_a_password_in_a_url_is_told_nobody(api_with):
    """While Redis is unreachable, error texts may contain its URL."""
    secret = "s3cr3t-of-redis"
    with socket.socket() as nobody:  # bound, not listening: connections are refused
        nobody.bind(("127.0.0.1", 0))
        api = api_with(secret, redis_url=f"redis://somebody:{secret}@127.0.0.1:{nobody.getsockname()[1]}/0")
        answers = [api.ask("GET", path) for path in ("/policies", "/nodes", "/changes", "/export", "/schema")]
        answers.append(api.ask("POST", "/policies", {"policy": "FOR TENANT AUTH_x DO SET noop"}))
    assert [one.status for one in answers] == [503, 503, 503, 503, 200, 503]
    assert answers[0].headers["retry-after"]
    logged = api.log()
    assert " 503 " in logged
    assert secret not in logged
    assert api.token not in logged
