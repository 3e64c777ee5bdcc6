"""Contract: HEADs of many objects, or contractions of many, in one request to an object server.

A request with the method :data:`METHOD` and the path ``/`` has a JSON list of :data:`MOST` requests at most, as
:class:`ObjectRequest`.  The response is 200 with a JSON list of ``[status, [[header, value], ...]]`` in the same order.
Status and headers are those of the object server's response to a HEAD, or to a PUT of no bytes; no rows of containers
are written.

A server without ``egg:openstack-sluice#object`` answers 405.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from sluice_core.errors import DecodeError

METHOD: Final = "BATCH"
#: Requests in a batch, and their bytes in total.
MOST: Final = 64
LARGEST: Final = 4 << 20


class ObjectRequest(NamedTuple):
    """
    :param stored: None for a HEAD; else the headers of the object without bytes that replaces it, by their names in
        lower case, with ``x-timestamp`` and ``content-type``
    """

    device: str
    partition: int
    policy: int
    account: str
    container: str
    name: str
    stored: Mapping[str, str] | None = None


class ObjectAnswer(NamedTuple):
    """The response to one request."""

    status: int
    headers: Sequence[tuple[str, str]] = ()


def encode_requests(requests: Sequence[ObjectRequest]) -> bytes:
    """The body of a batch."""
    return json.dumps(requests).encode()


def decode_requests(body: bytes) -> list[ObjectRequest]:
    """
    :raises DecodeError: for a body that :func:`encode_requests` does not write, or beyond the limits
    """
    requests = [_request(one) for one in _list(body, "a batch of requests")]
    if not 0 < len(requests) <= MOST:
        raise DecodeError(f"{len(requests)} requests in a batch, expected 1 to {MOST}", body)
    return requests


def encode_answers(answers: Sequence[ObjectAnswer]) -> bytes:
    """The body of the response to a batch."""
    return json.dumps(answers).encode()


def decode_answers(body: bytes, expected: int) -> list[ObjectAnswer]:
    """
    :raises DecodeError: for a body that :func:`encode_answers` does not write for this many
    """
    answers = []
    for one in _list(body, "the answer to a batch"):
        match one:
            case [int(status), list(headers)]:
                answers.append(ObjectAnswer(status, [(str(name), str(value)) for name, value in headers]))
    if len(answers) != expected:
        raise DecodeError(f"{len(answers)} answers to a batch of {expected}", body)
    return answers


def _request(data: Any) -> ObjectRequest:
    match data:
        case [str(device), int(), int(), str(), str(), str(), None] if _is_name(device):
            return ObjectRequest(*data)
        case [str(device), int(), int(), str(), str(), str(), {"x-timestamp": str(), "content-type": str()} as stored]:
            if _is_name(device) and all(isinstance(one, str) for one in stored.values()):
                return ObjectRequest(*data)
    raise DecodeError("a request in a batch does not name an object", json.dumps(data).encode())


def _is_name(device: str) -> bool:
    """Whether it can name a folder, and leads out of none."""
    return "/" not in device and device not in ("", ".", "..")


def _list(body: bytes, what: str) -> list[Any]:
    try:
        items = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise DecodeError(f"{what} is not JSON: {error}", body) from error
    if not isinstance(items, list):
        raise DecodeError(f"{what} is no list", body)
    return items
