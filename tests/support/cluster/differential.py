"""The same requests to Swift with Sluice and to plain Swift; the responses must not differ.

Values that must differ are listed here with the reason; all others must be equal.  Each side has
an account of its own, whose name is replaced before the comparison.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import re
import socket
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final
from urllib.parse import quote

from sluice_aio.base.swift_http import SwiftHttp, SwiftResponse
from sluice_core.errors import SluiceError

#: Headers of a response that differ between two clusters, or two moments.
NOT_COMPARED: Final[Mapping[str, str]] = {
    "date": "the moment of the answer",
    "connection": "whether the server goes on with a connection depends on what it had read of it",
    "x-trans-id": "an id per request",
    "x-openstack-request-id": "an id per request",
    "last-modified": "the two objects were written one after the other",
    "x-timestamp": "the two objects were written one after the other",
    "x-copied-from-last-modified": "the two sources were written one after the other",
    "x-copied-from-account": "two accounts",
    "x-put-timestamp": "the two containers were made one after the other",
    "x-manifest-etag": "MD5 of a manifest, which holds the times of its segments",
    "x-object-version-id": "a timestamp",
    "x-copied-from-version-id": "a timestamp",
    "x-symlink-target-account": "two accounts",
    "x-delete-at": "counted from the moment of the request",
}
#: In bodies: names of a moment, an id or an account.
_MOMENTS: Final = (
    (re.compile(rb'"last_modified": "[^"]*"'), b'"last_modified": "-"'),
    (re.compile(rb"<LastModified>[^<]*</LastModified>"), b"<LastModified/>"),
    (re.compile(rb'"version_id": "\d+\.\d+"'), b'"version_id": "-"'),
    (re.compile(rb"tx[0-9a-f]{21}-[0-9a-f]{10}[\w.-]*"), b"TRANS-ID"),
)

#: A version's id, in an address or in the name of its hidden object.
_VERSION: Final = re.compile(r"(version-id=|%00)\d{10}\.\d{5}")

Headers = Mapping[str, str]
#: A query string, or a function that builds one for each side (signed addresses, version ids).
Query = str | Callable[[SwiftHttp], str]


class Different(SluiceError):
    """The two responses differ."""


class Twins:
    """Two Swift clients that send the same requests."""

    def __init__(self, ours: SwiftHttp, theirs: SwiftHttp) -> None:
        self.sides = (ours, theirs)

    def __call__(
        self,
        method: str,
        path: str = "",
        body: bytes = b"",
        headers: Headers | None = None,
        query: Query = "",
        chunked: bool = False,
        cut: int | None = None,
        anonymous: bool = False,
    ) -> SwiftResponse:
        """Both responses, which are equal.

        :param chunked: send the body without a length
        :param cut: send this many bytes of the body and disconnect
        :param anonymous: without a token
        :raises Different: when they are not equal
        """
        answers = []
        for side in self.sides:
            target = side.account + (f"/{quote(path)}" if path else "")
            asked = query(side) if callable(query) else query
            target += f"?{asked}" if asked else ""
            named = {**({} if anonymous else {"X-Auth-Token": side.token}), **(headers or {})}
            if chunked or cut is not None:
                answers.append(_by_hand(side, method, target, named, body, cut))
            else:
                answers.append(side.raw(method, target, named, body))
        mine, theirs = map(self.view, answers)
        if mine != theirs:
            raise Different(_difference(f"{method} {path}?{query} {headers}", mine, theirs))
        return answers[0]

    def view(self, answer: SwiftResponse) -> tuple[int, dict[str, str], bytes]:
        """The compared parts of a response."""
        headers = {name: self._same_everywhere(value) for name, value in answer.headers.items()}
        body = answer.body
        found = re.fullmatch(r"multipart/byteranges;\s*boundary=(\w+)", headers.get("content-type", ""))
        if found:
            headers["content-type"] = "multipart/byteranges"
            body = body.replace(found[1].encode(), b"BOUNDARY")
        for pattern, instead in _MOMENTS:
            body = pattern.sub(instead, body)
        if body.startswith(b"Errors:\n"):  # of the segments of a manifest, which Swift requests concurrently
            body = b"\n".join(sorted(body.splitlines()))
        for side in self.sides:
            body = body.replace(side.account.rpartition("/")[2].encode() + b"/", b"ACCOUNT/")
        kept = {name: value for name, value in headers.items() if name not in NOT_COMPARED}
        if body != answer.body:
            kept.pop("content-length", None)  # names of two lengths may have been in it
            kept.pop("etag", None)
        return answer.status, kept, body

    def listings(self, container: str, query: str = "") -> list[dict[str, Any]]:
        """Both listings, which are equal.

        :raises Different: when they are not equal
        """
        rows = []
        for side in self.sides:
            target = f"{side.account}/{quote(container)}?format=json&{query}"
            answer = side.raw("GET", target, {"X-Auth-Token": side.token})
            rows.append([_row(row) for row in json.loads(answer.body)] if answer.status == 200 else [])
        if rows[0] != rows[1]:
            odd = [pair for pair in zip(rows[0], rows[1], strict=False) if pair[0] != pair[1]]
            raise Different(f"listings of `{container}`: {len(rows[0])} and {len(rows[1])} rows, first {odd[:1]}")
        return rows[0]

    def _same_everywhere(self, value: str) -> str:
        for side in self.sides:
            value = value.replace(side.account.rpartition("/")[2] + "/", "ACCOUNT/")
        return _VERSION.sub(r"\1MOMENT", value)


def _row(row: dict[str, Any]) -> dict[str, Any]:
    if "slo_etag" in row:
        row["hash"] = "-"  # MD5 of a manifest, which contains the times of its segments
    return {name: value for name, value in row.items() if name not in ("last_modified", "version_id", "symlink_path")}


def _difference(request: str, mine: tuple[Any, ...], theirs: tuple[Any, ...]) -> str:
    lines = [request, f"status {mine[0]} and {theirs[0]}"]
    for name in sorted({*mine[1], *theirs[1]}):
        if mine[1].get(name) != theirs[1].get(name):
            lines.append(f"header {name}: `{mine[1].get(name)}` and `{theirs[1].get(name)}`")
    if mine[2] != theirs[2]:
        place = next((n for n, pair in enumerate(zip(mine[2], theirs[2], strict=False)) if pair[0] != pair[1]), -1)
        lines.append(f"bodies of {len(mine[2])} and {len(theirs[2])} bytes, different from byte {place}")
        lines.append(f"{mine[2][max(0, place - 20) : place + 200]!r}")
        lines.append(f"{theirs[2][max(0, place - 20) : place + 200]!r}")
    return "\n".join(lines)


def _by_hand(
    side: SwiftHttp, method: str, target: str, headers: Headers, body: bytes, cut: int | None
) -> SwiftResponse:
    """A request without a length, or one that ends before it is over."""
    connection = http.client.HTTPConnection(side.address, timeout=60)
    with contextlib.closing(connection):
        if cut is None:
            named = {**headers, "Transfer-Encoding": "chunked"}
            connection.request(method, target, _pieces(body), named, encode_chunked=True)
        else:
            connection.putrequest(method, target)
            for name, value in {**headers, "Content-Length": str(len(body))}.items():
                connection.putheader(name, value)
            connection.endheaders(body[:cut])
            connection.sock.shutdown(socket.SHUT_WR)
        with connection.getresponse() as response:
            content = response.read()
        return SwiftResponse(response.status, {name.lower(): value for name, value in response.getheaders()}, content)


def _pieces(body: bytes, size: int = 50_021) -> Iterator[bytes]:
    return (body[first : first + size] for first in range(0, len(body), size))
