"""The requests of clients at the home of an object: a WSGI application behind the proxies.

A proxy sends a request as the client made it, with the storage policy before the path: ``PUT
/<policy>/<account>/<container>/<object>``.  It has authorized it, and removed internal headers of clients.  The answer
is that for the client, except for two: 307 with the address of another home, and 503 when a majority is away.

A POST with ``?call=CLASS.METHOD`` calls a method.  Its argument is the body: JSON, MessagePack, or bytes of any other
type.  The answer has the type that ``Accept`` names, MessagePack or JSON, and by default that of the argument.
"""

from __future__ import annotations

import base64
import json
import logging
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from sluice_core.errors import DecodeError
from sluice_middleware.swift import proxy_api as swift
from sluice_objects import calls, writes
from sluice_objects.api import LARGEST_STATE, ObjectClass
from sluice_objects.names import unknown
from sluice_objects.protocol.home import Home, NoMajority, Replaced, Unknown
from sluice_objects.serving import ServedObject
from sluice_objects.state.records import TYPED, ObjectState
from sluice_objects.values import unpack
from sluice_objects_swift.place import Place

log = logging.getLogger(__name__)

JSON: Final = "application/json"
MSGPACK: Final = "application/msgpack"
#: Headers between proxy and home.
CALLER: Final = "X-Backend-Sluice-Caller"
HOME: Final = "X-Backend-Sluice-Home"
#: Headers of clients.
TYPE: Final = "X-Object-Sluice-Type"
VERSION: Final = "X-Object-Sluice-Version"
APPEND_AT: Final = "X-Object-Append-At"
SESSION: Final = "X-Sluice-Session"
#: Digits of a number in a header at most.
_DIGITS: Final = 18
_META: Final = "x-object-meta-"
_KEPT: Final = frozenset(("content-disposition", "content-encoding", "x-robots-tag", "cache-control", "expires"))

Request = writes.Put | writes.Post | writes.Delete | calls.Call | None
Outcome = writes.WriteOutcome | calls.Outcome


class BadRequest(Exception):
    """
    :param status: of the answer
    """

    def __init__(self, message: str, status: int = 400) -> None:
        super().__init__(message)
        self.status = status


class RunningObject:
    """The object as its home runs requests on it.

    :param new_home: makes a home that has not taken the object over yet
    """

    def __init__(self, new_home: Callable[[], Home[ObjectState]], classes: Mapping[str, ObjectClass]) -> None:
        self._make_home = new_home
        self._classes = classes
        self._since: float | None = None
        self._began = 0.0
        self.served: ServedObject[ObjectState, Request, Outcome] = ServedObject(self._new_home, self._run)

    def _new_home(self) -> Home[ObjectState]:
        self._since = None
        return self._make_home()

    def _run(self, state: ObjectState | None, request: Request) -> tuple[ObjectState | None, Outcome]:
        if self._since is None:
            self._since, self._began = max(time.time(), state.clock if state else 0.0), time.monotonic()
        # goes on from there at the pace of this process: a wall clock behind that of the former home would stand still
        now = self._since + time.monotonic() - self._began
        if isinstance(request, writes.Put) and request.class_name and request.class_name not in self._classes:
            return state, writes.WriteOutcome(400, None, unknown("class", request.class_name, self._classes))
        if request is None:
            return state, writes.WriteOutcome(200, writes.existing(state, now))
        if isinstance(request, calls.Call):
            return calls.run(self._classes, state, request, now, self._since)
        return writes.write(state, request, now)


class HomeApp:
    """
    :param find: the object at a place
    """

    def __init__(self, find: Callable[[Place], RunningObject]) -> None:
        self._find = find

    def __call__(self, env: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        """WSGI."""
        request = swift.Request(env)
        try:
            response = self._respond(request)
        except BadRequest as error:
            response = _refusal(request, error.status, f"{error}")
        except NoMajority as error:
            response = _refusal(request, 503, f"the object cannot be served: {error}")
        except Unknown as error:
            response = _refusal(request, 503, f"it is not known whether the request had an effect: {error}")
        except Replaced as error:
            response = swift.Response(request=request, status=307, headers={HOME: error.home})
        body: Iterable[bytes] = response(env, start_response)
        return body

    def _respond(self, request: Any) -> Any:
        place = _place(request)
        parsed = parse(request)
        outcome = self._find(place).served.call(parsed)
        if isinstance(outcome, calls.Outcome):
            return _call_response(request, outcome)
        if outcome.status >= 400:
            return _refusal(request, outcome.status, outcome.reason)
        return _object_response(request, outcome)


def _place(request: Any) -> Place:
    try:
        policy, account, container, name = request.split_path(4, 4, True)
        return Place(int(policy), account, container, name)
    except ValueError as error:
        raise BadRequest(f"`{request.path[:200]}`: expected /POLICY/ACCOUNT/CONTAINER/OBJECT") from error


def parse(request: Any) -> Request:
    """The request for the state; None to read it.

    :raises BadRequest: when a header or the body is not as expected
    """
    method = request.method
    if method in ("GET", "HEAD"):
        return None
    if method == "POST" and "call" in request.params:
        return _call(request)
    if method == "PUT":
        at = _number(request, APPEND_AT)
        return writes.Put(
            _body(request), _conditions(request), at, request.headers.get(TYPE, ""), "", **_metadata(request)
        )
    if method == "POST":
        return writes.Post(**_metadata(request))
    if method == "DELETE":
        return writes.Delete(_conditions(request))
    raise BadRequest(f"method `{method}`, expected GET, HEAD, PUT, POST or DELETE", 405)


def _call(request: Any) -> calls.Call:
    class_name, dot, method = request.params["call"].partition(".")
    if not dot:
        raise BadRequest(f"call `{request.params['call']}`, expected CLASS.METHOD")
    session, _, number = request.headers.get(SESSION, "").partition(";")
    if session and not (number.isdecimal() and len(number) <= _DIGITS):
        raise BadRequest(f"{SESSION} `{session};{number}`, expected ID;NUMBER")
    caller = request.headers.get(CALLER, "")
    trans_id = request.headers.get("X-Trans-Id", "")
    return calls.Call(class_name, method, _argument(request), caller, trans_id, session, int(number or 0))


def _argument(request: Any) -> Any:
    body = _body(request)
    content_type = _media_type(request.headers.get("Content-Type", ""))
    try:
        if content_type == MSGPACK:
            return unpack(body) if body else None
        if content_type == JSON:
            return json.loads(body, parse_constant=_refuse_constant) if body else None
    except (ValueError, RecursionError, DecodeError) as error:
        raise BadRequest(f"the argument cannot be read as {content_type}: {error}") from error
    return body or None


def _refuse_constant(word: str) -> None:
    raise ValueError(f"`{word}` is no value of JSON")


def _body(request: Any) -> bytes:
    length = request.content_length
    if length is not None and length > LARGEST_STATE:
        raise BadRequest(f"a body of {length} bytes, expected at most {LARGEST_STATE}", 413)
    body: bytes = request.environ["wsgi.input"].read(LARGEST_STATE + 1 if length is None else length)
    if len(body) > LARGEST_STATE:
        raise BadRequest(f"a body of more than {LARGEST_STATE} bytes", 413)
    if length is not None and len(body) != length:
        raise BadRequest(f"{len(body)} of {length} bytes arrived", 499)
    return body


def _conditions(request: Any) -> writes.Conditions:
    return writes.Conditions(_etags(request, "If-Match"), _etags(request, "If-None-Match"))


def _etags(request: Any, name: str) -> frozenset[str]:
    value = request.headers.get(name, "")
    return frozenset(filter(None, (swift.normalize_etag(etag.strip()) for etag in value.split(","))))


def _number(request: Any, name: str) -> int | None:
    value = request.headers.get(name)
    if value is None:
        return None
    if not (value.isdecimal() and len(value) <= _DIGITS):
        raise BadRequest(f"{name} `{value[:40]}`, expected a number")
    return int(value)


def _metadata(request: Any) -> dict[str, Any]:
    kept = {
        name.lower(): value
        for name, value in request.headers.items()
        if name.lower().startswith(_META) or name.lower() in _KEPT
    }
    expires = _number(request, "X-Delete-At")
    return {
        "content_type": request.headers.get("Content-Type", ""),
        "metadata": kept,
        "expires": None if expires is None else float(expires),
    }


def _object_response(request: Any, outcome: writes.WriteOutcome) -> Any:
    state = outcome.state
    if state is None:
        return _refusal(request, 404, "")
    headers = {name.title(): value for name, value in state.metadata.items()}
    headers |= {
        "Etag": f'"{state.etag}"',
        "X-Timestamp": f"{state.modified:016.5f}",
        VERSION: str(state.version),
    }
    if state.kind == TYPED:
        headers[TYPE] = state.class_name
    if state.expires is not None:
        headers["X-Delete-At"] = str(int(state.expires))
    body = state.content.stream if request.method in ("GET", "HEAD") else b""
    content_type = state.content_type or "application/octet-stream"
    response = swift.Response(
        request=request,
        status=outcome.status,
        headers=headers,
        body=body,
        content_type=content_type,
        conditional_response=request.method in ("GET", "HEAD"),
    )
    response.last_modified = state.modified
    return response


def _call_response(request: Any, outcome: calls.Outcome) -> Any:
    headers = {VERSION: str(outcome.version)}
    if outcome.kind != calls.DONE or outcome.answer is None:
        document = {"outcome": outcome.kind, "error": outcome.error, "message": outcome.message}
        return swift.Response(
            request=request, status=outcome.status, headers=headers, body=json.dumps(document), content_type=JSON
        )
    wanted = _media_type(request.headers.get("Accept", "")) or _media_type(request.headers.get("Content-Type", ""))
    if wanted == MSGPACK:
        body, content_type = outcome.answer, MSGPACK
    else:
        body, content_type = json.dumps(unpack(outcome.answer), default=_text).encode(), JSON
    return swift.Response(request=request, status=200, headers=headers, body=body, content_type=content_type)


def _text(value: object) -> object:
    """Bytes in an answer as JSON: text where they are UTF-8, and otherwise an object with Base64."""
    if not isinstance(value, bytes):
        raise TypeError(type(value))
    try:
        return value.decode()
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(value).decode()}


def _media_type(header: str) -> str:
    return header.partition(";")[0].strip().lower()


def _refusal(request: Any, status: int, reason: str) -> Any:
    body = f"{reason}\n" if reason else ""
    headers = {"Retry-After": "1"} if status == 503 else {}
    return swift.Response(request=request, status=status, body=body, headers=headers, content_type="text/plain")
