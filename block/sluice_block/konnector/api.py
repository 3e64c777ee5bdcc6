"""The konnector's JSON API, a WSGI application.

====== ============================ ==========================================================
GET    /health                      that it answers, and how many volumes there are
GET    /volumes                     all volumes
GET    /volumes/<id>                one
PUT    /volumes/<id>                attach: ``project``, ``connection``, ``export``, ``stack``, …
DELETE /volumes/<id>                detach
PUT    /volumes/<id>/filters        another ``stack``
PUT    /volumes/<id>/limits         other limits; those that are not named are none
GET    /volumes/<id>/counters       what was counted since it was attached
====== ============================ ==========================================================

A fault is ``{"error": reason}`` with its status.
"""

from __future__ import annotations

import json
import logging
import uuid
from collections.abc import Callable, Iterable, Mapping
from math import isfinite
from typing import Any, Final, TypeVar

from werkzeug.exceptions import HTTPException
from werkzeug.routing import Map, Rule
from werkzeug.wrappers import Request, Response

from sluice_block.konnector.konnector import Konnector
from sluice_block.konnector.records import EXPORTS, VolumeAttachment, VolumeLimits
from sluice_core.errors import CallerError, DecodeError, SluiceError
from sluice_core.volumes.messages import StackStep

T = TypeVar("T")
log = logging.getLogger(__name__)

#: Bytes of a request's body.
_LARGEST: Final = 1 << 20
#: Fields of an attach, and what they are.
_ATTACHED: Final[Mapping[str, type]] = {
    "project": str,
    "connection": dict,
    "name": str,
    "attachment": str,
    "export": str,
    "stack": list,
    "limits": dict,
}
_JSON: Final[Mapping[Any, str]] = {
    str: "a text",
    list: "a list",
    dict: "an object",
    (int, float): "a number",
}
_ROUTES: Final = Map(
    [
        Rule("/health", endpoint="health", methods=("GET",)),
        Rule("/volumes", endpoint="list_volumes", methods=("GET",)),
        Rule("/volumes/<volume>", endpoint="show_volume", methods=("GET",)),
        Rule("/volumes/<volume>", endpoint="attach", methods=("PUT",)),
        Rule("/volumes/<volume>", endpoint="detach", methods=("DELETE",)),
        Rule("/volumes/<volume>/filters", endpoint="set_filters", methods=("PUT",)),
        Rule("/volumes/<volume>/limits", endpoint="set_limits", methods=("PUT",)),
        Rule("/volumes/<volume>/counters", endpoint="show_counters", methods=("GET",)),
    ]
)


class KonnectorApi:
    """Calls the konnector; the methods that :data:`_ROUTES` names return a status and data."""

    def __init__(self, konnector: Konnector) -> None:
        self._konnector = konnector

    def __call__(self, environment: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        request = Request(environment)
        request.max_content_length = _LARGEST
        status, data = self._answer(request)
        body = json.dumps(data).encode() + b"\n" if data is not None else b""
        answer: Iterable[bytes] = Response(body, status, content_type="application/json")(environment, start_response)
        return answer

    def _answer(self, request: Request) -> tuple[int, Any]:
        try:
            endpoint, values = _ROUTES.bind_to_environ(request.environ).match()
            given = {name: _volume_id(value) for name, value in values.items()}
            found: tuple[int, Any] = getattr(self, endpoint)(request, **given)
            return found
        except SluiceError as error:
            return error.status, {"error": str(error)}
        except HTTPException as error:
            return error.code or 500, {"error": f"{error.name.lower()}: `{request.method} {request.path}`"}
        except Exception:
            log.exception("%s %s", request.method, request.path)
            return 500, {"error": "a bug of the konnector, its log says more"}

    def health(self, request: Request) -> tuple[int, Any]:
        """That it answers."""
        return 200, {"status": "ok", "volumes": len(self._konnector.volumes())}

    def list_volumes(self, request: Request) -> tuple[int, Any]:
        """All volumes."""
        return 200, {"volumes": [one.to_data() for one in self._konnector.volumes()]}

    def show_volume(self, request: Request, volume: str) -> tuple[int, Any]:
        """One volume."""
        return 200, self._konnector.volume(volume).to_data()

    def attach(self, request: Request, volume: str) -> tuple[int, Any]:
        """Attach it: 201; 200 when it was attached like that."""
        given = _body(request, _ATTACHED)
        for name in ("project", "connection"):
            if not given.get(name):
                raise CallerError(f"`{name}` is missing")
        if given.get("export", EXPORTS[0]) not in EXPORTS:
            raise CallerError(f"`export` is `{given['export']}`, expected {' or '.join(EXPORTS)}")
        data = {**given, "volume": volume, "limits": _limits(given.get("limits", {})).to_data()}
        attached, fresh = self._konnector.attach(_decoded(VolumeAttachment.from_data, data))
        return 201 if fresh else 200, attached.to_data()

    def detach(self, request: Request, volume: str) -> tuple[int, Any]:
        """Detach it."""
        self._konnector.detach(volume)
        return 204, None

    def set_filters(self, request: Request, volume: str) -> tuple[int, Any]:
        """Put another stack in the place of its stack."""
        stack = _body(request, {"stack": list}).get("stack")
        if stack is None:
            raise CallerError("`stack` is missing, expected a list of filters")
        steps = [_decoded(StackStep.from_data, one) for one in stack]
        return 200, self._konnector.replace_stack(volume, steps).to_data()

    def set_limits(self, request: Request, volume: str) -> tuple[int, Any]:
        """Put other limits in force."""
        limits = _limits(_body(request, dict.fromkeys(VolumeLimits.__slots__, (int, float))))
        return 200, self._konnector.set_limits(volume, limits).to_data()

    def show_counters(self, request: Request, volume: str) -> tuple[int, Any]:
        """What was counted."""
        found = self._konnector.volume(volume).counters()
        data = {name: getattr(found, name) for name in found.__slots__ if not name.endswith("latency")}
        for name, histogram in (("read", found.read_latency), ("write", found.write_latency)):
            data |= {f"{name}_p50": histogram.quantile(0.5), f"{name}_p99": histogram.quantile(0.99)}
        return 200, data


def _limits(data: Mapping[str, Any]) -> VolumeLimits:
    """
    :raises CallerError: for one that is no rate
    """
    for name, value in data.items():
        if isinstance(value, bool) or not isfinite(value) or value < 0:
            raise CallerError(f"`{name}` is `{json.dumps(value)}`, expected a rate per second, or 0 for none")
    return VolumeLimits(**data)


def _volume_id(text: str) -> str:
    try:
        return str(uuid.UUID(text))
    except ValueError as error:
        raise CallerError(f"`{text}` is not a volume's id, expected a UUID") from error


def _body(request: Request, known: Mapping[str, type | tuple[type, ...]]) -> Mapping[str, Any]:
    """The object in the body.

    :param known: its fields, and what they are
    :raises CallerError: when it is none, or has a field that is not known or of another type
    """
    try:
        data = json.loads(request.get_data() or b"{}")
    except (ValueError, RecursionError) as error:
        raise CallerError(f"the body is not JSON: {error}") from error
    if not isinstance(data, dict):
        raise CallerError("the body is not an object")
    for name, value in data.items():
        if name not in known:
            raise CallerError(f"unknown field `{name}`, expected {', '.join(known)}")
        if not isinstance(value, known[name]):
            raise CallerError(f"`{name}` is `{json.dumps(value)}`, expected {_JSON[known[name]]}")
    return data


def _decoded(decode: Callable[[Mapping[str, Any]], T], data: Any) -> T:
    try:
        return decode(data)
    except DecodeError as error:
        raise CallerError(str(error)) from error
