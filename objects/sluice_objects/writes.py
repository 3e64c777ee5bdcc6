"""PUT, POST and DELETE of clients, on the state of an object at its home.

Each is a pure function of a state, a request and the time.  It returns the next state, or the same one when a condition
is not met; the home stores what differs.  Conditions and statuses follow RFC 9110 and S3:

* `If-Match` on an object that does not exist: 404; with another ETag: 412.
* `If-None-Match: *` on one that exists, and with its ETag: 412.
* An append at another size than the present one: 409.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from sluice_objects.api import StateTooLarge
from sluice_objects.state.codec import check_size
from sluice_objects.state.records import DELETED, PLAIN, TYPED, ContentState, ObjectState

ANY: Final = "*"


@dataclass(frozen=True, slots=True)
class Conditions:
    """
    :param if_match: ETags without quotes, or :data:`ANY`; empty: no condition
    :param if_none_match: the same
    """

    if_match: frozenset[str] = frozenset()
    if_none_match: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Put:
    """
    :param append_at: append the body to a stream of this size instead of replacing it
    :param class_name: creates a typed object of this class, when there is no object
    :param metadata: headers that Swift keeps with an object, names in lower case
    :param expires: seconds since 1970
    """

    body: bytes
    conditions: Conditions = Conditions()
    append_at: int | None = None
    class_name: str = ""
    code: str = ""
    content_type: str = "application/octet-stream"
    metadata: Mapping[str, str] = field(default_factory=dict)
    expires: float | None = None


@dataclass(frozen=True, slots=True)
class Post:
    """Replaces metadata; an empty content type keeps the present one."""

    metadata: Mapping[str, str]
    content_type: str = ""
    expires: float | None = None


@dataclass(frozen=True, slots=True)
class Delete:
    """Deletes the object."""

    conditions: Conditions = Conditions()


@dataclass(frozen=True, slots=True)
class WriteOutcome:
    """
    :param status: of the response
    :param reason: of a refusal, for the client
    :param state: the state of the object after the request; None when there is no object
    """

    status: int
    state: ObjectState | None
    reason: str = ""


def write(
    state: ObjectState | None, request: Put | Post | Delete, now: float
) -> tuple[ObjectState | None, WriteOutcome]:
    """The next state, and the outcome; 413 when the state would be too large."""
    changed, outcome = _write(state, request, now)
    try:
        if changed is not None and changed is not state:
            check_size(changed)
    except StateTooLarge as error:
        return state, WriteOutcome(error.status, existing(state, now), f"{error}")
    return changed, outcome


def _write(
    state: ObjectState | None, request: Put | Post | Delete, now: float
) -> tuple[ObjectState | None, WriteOutcome]:
    present = existing(state, now)
    if isinstance(request, Put):
        refusal = _refusal(present, request.conditions) or _refused_put(present, request)
        if refusal is None:
            return _done(201, _put(state, present, request, now))
    elif isinstance(request, Post):
        if present is not None:
            content_type = request.content_type or present.content_type
            changed = replace(present, metadata=request.metadata, expires=request.expires, content_type=content_type)
            return _done(202, _next(state, changed, now))
        refusal = (404, "")
    else:
        refusal = _refusal(present, request.conditions) or ((404, "") if present is None else None)
        if refusal is None:
            return _done(204, _next(state, ObjectState(DELETED, ContentState()), now))
    status, reason = refusal
    return state, WriteOutcome(status, present, reason)


def existing(state: ObjectState | None, now: float) -> ObjectState | None:
    """The state of an object that clients see: None when it was deleted or has expired."""
    if state is None or state.kind == DELETED or (state.expires is not None and state.expires <= now):
        return None
    return state


def etag_of(stream: bytes) -> str:
    """The ETag of a byte stream, as Swift has it."""
    return hashlib.md5(stream, usedforsecurity=False).hexdigest()


def _done(status: int, state: ObjectState) -> tuple[ObjectState, WriteOutcome]:
    return state, WriteOutcome(status, state)


def _refusal(present: ObjectState | None, conditions: Conditions) -> tuple[int, str] | None:
    wanted, unwanted = conditions.if_match, conditions.if_none_match
    if wanted:
        if present is None:
            return 404, "there is no object, expected one for If-Match"
        if ANY not in wanted and present.etag not in wanted:
            return 412, f"the object has the ETag `{present.etag}`, expected that of If-Match"
    if unwanted and present is not None and (ANY in unwanted or present.etag in unwanted):
        return 412, f"the object exists with the ETag `{present.etag}`, expected none of If-None-Match"
    return None


def _refused_put(present: ObjectState | None, request: Put) -> tuple[int, str] | None:
    if request.class_name and present is not None:
        return 412, "the object exists, expected none for X-Object-Sluice-Type"
    if request.append_at is not None:
        size = len(present.content.stream) if present else 0
        if size != request.append_at:
            return 409, f"the object has {size} bytes, expected {request.append_at} of X-Object-Append-At"
    return None


def _put(state: ObjectState | None, present: ObjectState | None, request: Put, now: float) -> ObjectState:
    if request.append_at is not None and present is not None:
        content = replace(present.content, stream=present.content.stream + request.body)
        return _next(state, replace(present, content=content, etag=etag_of(content.stream)), now)
    made = ObjectState(
        TYPED if request.class_name else PLAIN,
        ContentState(request.body),
        etag=etag_of(request.body),
        class_name=request.class_name,
        code=request.code,
        content_type=request.content_type,
        metadata=request.metadata,
        expires=request.expires,
    )
    return _next(state, made, now)


def _next(state: ObjectState | None, changed: ObjectState, now: float) -> ObjectState:
    """``changed`` as the state after ``state``: sessions stay, and the object's clock does not go back."""
    clock = max(now, state.clock if state else 0.0)
    version, sessions = (state.version, state.sessions) if state else (0, changed.sessions)
    return replace(changed, version=version + 1, sessions=sessions, clock=clock, modified=clock)
