"""Responses to conditions about the time of an object to which a motif gave new content."""

from email.utils import formatdate

import pytest

from sluice_middleware.motifs import reads
from sluice_middleware.wsgi import sysmeta
from sluice_middleware.wsgi.response import UpstreamResponse
from sluice_middleware.wsgi.stored_object import StoredObject

#: When a client uploaded it, and when a motif made new content of it.
UPLOADED, MADE = 1700000000, 1700000500


class Body(list):
    closed = False

    def close(self):
        self.closed = True


def answered(status, made=f"{MADE}.25000_0000001000000007"):
    headers = [
        ("Last-Modified", formatdate(UPLOADED, usegmt=True)),
        ("X-Timestamp", f"{UPLOADED}.00000"),
        ("X-Backend-Timestamp", f"{UPLOADED}.00000_0000001000000007"),
        ("X-Backend-Data-Timestamp", f"{UPLOADED}.00000_0000001000000007"),
        ("Content-Length", "4"),
        ("Content-Range", "bytes 0-3/9"),
        *([(sysmeta.MADE, made)] if made else []),
    ]
    return UpstreamResponse.build(status, headers, Body([b"made"]))


def asked(**conditions):
    return {
        "REQUEST_METHOD": "GET",
        **{f"HTTP_IF_{name.upper()}": formatdate(at, usegmt=True) for name, at in conditions.items()},
    }


@pytest.mark.parametrize(
    ("status", "conditions", "again"),
    [
        ("304 Not Modified", {"modified_since": UPLOADED}, True),
        ("304 Not Modified", {"modified_since": MADE}, True),
        ("304 Not Modified", {"modified_since": MADE + 1}, False),
        ("304 Not Modified", {}, False),
        ("200 OK", {"modified_since": UPLOADED - 1}, False),
        ("412 Precondition Failed", {"modified_since": UPLOADED}, False),
    ],
)
def test_not_modified_is_believed_of_the_time_of_the_content_only(status, conditions, again):
    answer, env = answered(status), asked(**conditions)
    assert reads.is_modified(env, StoredObject(answer.headers), answer) == again
    assert ("HTTP_IF_MODIFIED_SINCE" in env) == ("modified_since" in conditions and not again)


@pytest.mark.parametrize(
    ("status", "until", "becomes"),
    [
        ("200 OK", MADE + 1, "200 OK"),
        ("200 OK", MADE, "412 Precondition Failed"),
        ("206 Partial Content", UPLOADED, "412 Precondition Failed"),
        ("304 Not Modified", UPLOADED, "304 Not Modified"),
        ("412 Precondition Failed", UPLOADED, "412 Precondition Failed"),
    ],
)
def test_an_answer_has_the_time_of_the_content_and_is_refused_by_it(status, until, becomes):
    answer = answered(status)
    body, judged = (
        answer.body,
        reads.apply_content_time(asked(unmodified_since=until), StoredObject(answer.headers), answer),
    )
    headers = dict(judged.headers)
    assert judged.status == becomes
    assert headers["Last-Modified"] == formatdate(MADE + 1, usegmt=True)
    assert headers["X-Timestamp"] == f"{MADE}.25000"
    if becomes != status:
        assert (b"".join(judged.body), headers["Content-Length"], body.closed) == (b"", "0", True)
        assert "Content-Range" not in headers


def test_what_clients_wrote_is_answered_as_swift_does():
    answer, env = answered("304 Not Modified", made=""), asked(modified_since=UPLOADED, unmodified_since=UPLOADED - 1)
    stored, before = StoredObject(answer.headers), list(answer.headers)
    assert not reads.is_modified(env, stored, answer)
    assert reads.apply_content_time(env, stored, answer) is answer
    assert answer.headers == before


def test_metadata_that_were_posted_later_are_newer():
    answer = answered("200 OK")
    answer.headers[2] = ("X-Backend-Timestamp", f"{MADE + 9}.00000")
    shown = reads.apply_content_time(asked(), StoredObject(answer.headers), answer)
    assert dict(shown.headers)["Last-Modified"] == formatdate(MADE + 9, usegmt=True)
