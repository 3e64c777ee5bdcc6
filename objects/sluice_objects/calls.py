"""One call of a method: from a state to the next one, without any I/O.

The home commits the next state, and only then gives the outcome to the caller.  It may run further calls on the next
state before, and commit all together.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Final

from sluice_objects.api import LARGEST_ANSWER, Context, ObjectClass, Refused, Value
from sluice_objects.names import unknown
from sluice_objects.sessions import remember, repeated
from sluice_objects.state.codec import check_size
from sluice_objects.state.context import CallContext
from sluice_objects.state.records import TYPED, ObjectState, Session
from sluice_objects.values import pack
from sluice_objects.writes import etag_of, existing

log = logging.getLogger(__name__)

#: Kinds of outcomes: with an answer; done at an earlier attempt, whose answer was too long to be kept; refused by the
#: method or by this module, without an effect; and an error of the class, without an effect.
DONE: Final = "done"
GONE: Final = "done, answer gone"
REFUSED: Final = "refused"
FAILED: Final = "failed"
#: Status of an error of the class: no 5xx, after which clients and proxies would call again.
CLASS_ERROR: Final = 422
_LONGEST_MESSAGE: Final = 1000

Method = Callable[[Context, Value], Value]


@dataclass(frozen=True, slots=True)
class Call:
    """
    :param request_id: the same when the call is sent again
    :param session: id of the client's session, see :mod:`sluice_objects.sessions`; empty without one
    :param number: of the call in its session, from 1 on
    """

    class_name: str
    method: str
    argument: Value = None
    caller: str = ""
    request_id: str = ""
    session: str = ""
    number: int = 0


@dataclass(frozen=True, slots=True)
class Outcome:
    """What the caller gets.

    :param kind: :data:`DONE`, :data:`GONE`, :data:`REFUSED` or :data:`FAILED`
    :param status: of HTTP
    :param version: of the object after the call
    :param answer: encoded by :func:`~sluice_objects.values.pack`; None unless ``kind`` is :data:`DONE`
    :param error: the name of the exception, by which clients tell refusals apart
    """

    kind: str
    status: int
    version: int
    answer: bytes | None = None
    error: str = ""
    message: str = ""


class NoValue(Exception):
    """A method answers what is no value; the caller gets the message."""


class AnswerTooLarge(Refused):
    """The encoded answer has more than :data:`~sluice_objects.api.LARGEST_ANSWER` bytes."""

    def __init__(self, size: int) -> None:
        super().__init__(f"the answer has {size} bytes, expected at most {LARGEST_ANSWER}: ask for less", 413)


def run(
    classes: Mapping[str, ObjectClass], state: ObjectState | None, call: Call, now: float, home_since: float
) -> tuple[ObjectState | None, Outcome]:
    """The next state, which is the same one when nothing changed, and the outcome.

    A call that changes nothing leaves the clock of the object as it is, too: a home that takes over may show an earlier
    time than such a call saw, but never one earlier than that of a stored change.

    :param classes: those that the home knows; that of the object is the one which its state names
    :param now: seconds since 1970 by the clock of the home.  A home whose clock is behind ``state.clock`` when it takes
        the object over adds the difference: otherwise time stands still until its clock has caught up.
    :param home_since: the time of the object when its present home took it over: not before ``state.clock`` then
    """
    present = existing(state, now)
    if present is None:
        return state, Outcome(REFUSED, 404, 0, None, Refused.__name__, "there is no object")
    return _run(classes, present, call, now, home_since)


def _run(
    classes: Mapping[str, ObjectClass], state: ObjectState, call: Call, now: float, home_since: float
) -> tuple[ObjectState, Outcome]:
    try:
        method, writes = _find(classes, state, call)
        numbered = writes and call.session != ""
        kept = repeated(state.sessions, call.session, call.number) if numbered else None
        if kept is not None:
            return state, Outcome(GONE if kept.answer is None else DONE, 200, kept.version, kept.answer)
        time = max(state.clock, now)
        context = CallContext(state, writes, time, home_since, call.caller, call.request_id)
        answer = _packed(method(context, call.argument))
        after = _next_state(state, context, time)
        if numbered:
            last = Session(call.number, answer, after.version, time)
            after = replace(after, clock=time, sessions=remember(state.sessions, call.session, last))
        if after is not state:
            check_size(after)
    except Refused as error:
        return state, _outcome(REFUSED, error.status, state, error, str(error))
    except Exception as error:
        log.exception("%s.%s of a typed object failed (request %r)", call.class_name, call.method, call.request_id)
        message = f"class `{call.class_name}`: method `{call.method}` raised `{type(error).__name__}`"
        message += f": {error}" if isinstance(error, NoValue) else ""
        return state, _outcome(FAILED, CLASS_ERROR, state, error, message)
    return after, Outcome(DONE, 200, after.version, answer)


def _find(classes: Mapping[str, ObjectClass], state: ObjectState, call: Call) -> tuple[Method, bool]:
    """The method, and whether it writes.

    :raises Refused: when there is none, or the object has another class
    """
    if call.class_name not in classes:
        raise Refused(unknown("class", call.class_name, classes), 404)
    if state.kind != TYPED or state.class_name != call.class_name:
        present = f"class `{state.class_name}`" if state.kind == TYPED else "no class"
        raise Refused(f"the object has {present}, expected class `{call.class_name}`", 409)
    found = classes[call.class_name]
    methods = found.methods()
    if call.method not in methods:
        raise Refused(unknown(f"method of class `{call.class_name}`", call.method, methods), 404)
    return getattr(found, call.method), methods[call.method]


def _next_state(state: ObjectState, context: CallContext, time: float) -> ObjectState:
    content, snapshots, changed = context.result()
    if not changed:
        return state
    etag = state.etag if content.stream is state.content.stream else etag_of(content.stream)
    changed_state = replace(state, content=content, snapshots=snapshots, etag=etag)
    return replace(changed_state, version=state.version + 1, modified=time, clock=time)


def _packed(answer: Value) -> bytes:
    """
    :raises NoValue: when it is none
    :raises AnswerTooLarge: when it has too many bytes
    """
    try:
        packed = pack(answer)
    except ValueError as error:
        raise NoValue(str(error)) from error
    if len(packed) > LARGEST_ANSWER:
        raise AnswerTooLarge(len(packed))
    return packed


def _outcome(kind: str, status: int, state: ObjectState, error: Exception, message: str) -> Outcome:
    return Outcome(kind, status, state.version, None, type(error).__name__, message[:_LONGEST_MESSAGE])
