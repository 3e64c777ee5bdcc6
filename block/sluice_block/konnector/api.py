"""The konnector's JSON API, a WSGI application.

====== ============================ ==========================================================
GET    /health                      that it answers, which machine it is, how many volumes there are
GET    /connector                   this machine's connector for Cinder's drivers: ``?export=…&filter=…&filter=…``
GET    /volumes                     all volumes
GET    /volumes/<id>                one
PUT    /volumes/<id>                attach: ``project``, ``connection``, ``export``, ``stack``, …
DELETE /volumes/<id>                detach
PUT    /volumes/<id>/filters        another ``stack``
PUT    /volumes/<id>/limits         other limits; limits that are not named are removed
PUT    /volumes/<id>/size           show its present size (``size`` of it), or answer that it needs a new attach
PUT    /volumes/<id>/confirmed      its ``attachment`` is valid: attach it again, if it waits for that
PUT    /volumes/<id>/revoked        its ``attachment`` was ended by force: stop it, remove its record once unused
PUT    /volumes/<id>/log            switch the log of requests: ``on``
GET    /volumes/<id>/counters       the counts since it was attached
GET    /volumes/<id>/locality       where it is stored: ``rbd``, null if that is not in Ceph
POST   /volumes/<id>/measure        overwrite and measure it with fio: ``seconds`` for each figure
GET    /volumes/<id>/measure        the progress of the measurement, and the figures
====== ============================ ==========================================================

A fault is ``{"error": reason}`` with its status.  Callers are root on this machine or authenticated by Keystone, so a
caller's request id is kept, in the answer and in the log.
"""

from __future__ import annotations

import json
import logging
import uuid
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, TypeVar

from werkzeug.exceptions import HTTPException
from werkzeug.routing import Map, Rule
from werkzeug.wrappers import Request, Response

from sluice_block.datapath.records import EXPORTS, VolumeAttachment, VolumeLimits
from sluice_block.konnector import volume_changes
from sluice_block.konnector.connector_properties import SINGLE_REQUESTS, connector_properties
from sluice_block.konnector.konnector import Konnector
from sluice_core.errors import CallerError, DecodeError, SluiceError
from sluice_core.process.logs import REQUEST_ID, log_fields, request_id
from sluice_volumes.messages import StackStep

T = TypeVar("T")
log = logging.getLogger(__name__)

#: Bytes of a request's body.
_LARGEST: Final = 1 << 20
#: Greatest rate per second that a page can hold.
_FASTEST: Final = 1 << 63
#: Bytes of the smallest block of a device.
_SECTOR: Final = 512
#: Greatest number of seconds for a figure.
_LONGEST_FIGURE: Final = 300
#: Fields of an attach, and their types.
_ATTACHED: Final[Mapping[str, type]] = {
    "project": str,
    "account": str,
    "connection": dict,
    "name": str,
    "attachment": str,
    "export": str,
    "stack": list,
    "limits": dict,
    "fresh": bool,
    "secret": str,
    "size": int,
}
_JSON: Final[Mapping[Any, str]] = {
    str: "a text",
    list: "a list",
    dict: "an object",
    bool: "true or false",
    int: "a whole number",
    (int, float): "a number",
}
_ROUTES: Final = Map(
    [
        Rule("/health", endpoint="health", methods=("GET",)),
        Rule("/connector", endpoint="show_connector", methods=("GET",)),
        Rule("/volumes", endpoint="list_volumes", methods=("GET",)),
        Rule("/volumes/<volume>", endpoint="show_volume", methods=("GET",)),
        Rule("/volumes/<volume>", endpoint="attach", methods=("PUT",)),
        Rule("/volumes/<volume>", endpoint="detach", methods=("DELETE",)),
        Rule("/volumes/<volume>/filters", endpoint="set_filters", methods=("PUT",)),
        Rule("/volumes/<volume>/limits", endpoint="set_limits", methods=("PUT",)),
        Rule("/volumes/<volume>/size", endpoint="resize", methods=("PUT",)),
        Rule("/volumes/<volume>/confirmed", endpoint="confirm", methods=("PUT",)),
        Rule("/volumes/<volume>/revoked", endpoint="revoke", methods=("PUT",)),
        Rule("/volumes/<volume>/log", endpoint="set_log", methods=("PUT",)),
        Rule("/volumes/<volume>/counters", endpoint="show_counters", methods=("GET",)),
        Rule("/volumes/<volume>/locality", endpoint="show_locality", methods=("GET",)),
        Rule("/volumes/<volume>/measure", endpoint="measure", methods=("POST",)),
        Rule("/volumes/<volume>/measure", endpoint="show_measurement", methods=("GET",)),
    ]
)


class KonnectorApi:
    """Calls the konnector; the methods in :data:`_ROUTES` return a status and data.

    :param node: name of this machine in the cluster
    :param ip: its address for other machines
    """

    def __init__(self, konnector: Konnector, node: str, ip: str) -> None:
        self._konnector = konnector
        self._node = node
        self._ip = ip

    def __call__(self, environment: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        request = Request(environment)
        request.max_content_length = _LARGEST
        name = request_id(request.headers.get(REQUEST_ID, ""))
        with log_fields(request=name):
            status, data = self._answer(request)
        answer: Iterable[bytes] = json_response(status, data, name)(environment, start_response)
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
        """Answer that the service works."""
        machine = connector_properties(self._ip)
        known = {name: machine[name] for name in ("host", "ip", "initiator") if name in machine}
        return 200, {"status": "ok", "node": self._node, **known, "volumes": len(self._konnector.volumes())}

    def show_connector(self, request: Request) -> tuple[int, Any]:
        """Return the connector dictionary of this machine, for a volume with this ``export`` and each ``filter``."""
        properties = connector_properties(self._ip)
        export, filters = request.args.get("export", ""), request.args.getlist("filter")
        if self._konnector.makes_single_requests(export, filters):
            properties[SINGLE_REQUESTS] = True
        return 200, properties

    def list_volumes(self, request: Request) -> tuple[int, Any]:
        """All volumes."""
        return 200, {"volumes": [one.to_data() for one in self._konnector.volumes()]}

    def show_volume(self, request: Request, volume: str) -> tuple[int, Any]:
        """One volume."""
        return 200, self._konnector.volume(volume).to_data()

    def attach(self, request: Request, volume: str) -> tuple[int, Any]:
        """Attach it: 201; 200 when it is attached with the same parameters."""
        given = _body(request, _ATTACHED)
        for name in ("project", "connection"):
            if not given.get(name):
                raise CallerError(f"`{name}` is missing")
        if given.get("export", EXPORTS[0]) not in EXPORTS:
            raise CallerError(f"`export` is `{given['export']}`, expected {' or '.join(EXPORTS)}")
        if "/" in given.get("account", ""):
            raise CallerError(f"`account` is `{given['account']}`, expected the name of a Swift account")
        if not given.get("secret", "").isascii() or not given.get("secret", "x").isprintable():
            raise CallerError("`secret` has characters that a passphrase cannot have, expected printable ASCII")
        more = {"limits": _limits(given.get("limits", {})).to_data(), "size": 0, "asked_size": _size(given)}
        data = {**given, "volume": volume, **more}
        attached, fresh = self._konnector.attach(_decoded(VolumeAttachment.from_data, data))
        return 201 if fresh else 200, attached.to_data()

    def detach(self, request: Request, volume: str) -> tuple[int, Any]:
        """Detach it."""
        self._konnector.detach(volume)
        return 204, None

    def set_filters(self, request: Request, volume: str) -> tuple[int, Any]:
        """Replace its stack."""
        stack = _body(request, {"stack": list}).get("stack")
        if stack is None:
            raise CallerError("`stack` is missing, expected a list of filters")
        steps = [_decoded(StackStep.from_data, one) for one in stack]
        return 200, self._konnector.replace_stack(volume, steps).to_data()

    def set_limits(self, request: Request, volume: str) -> tuple[int, Any]:
        """Apply other limits."""
        limits = _limits(_body(request, dict.fromkeys(VolumeLimits.__slots__, (int, float))))
        return 200, self._konnector.set_limits(volume, limits).to_data()

    def resize(self, request: Request, volume: str) -> tuple[int, Any]:
        """Show its present size, or answer that this needs a new attach."""
        size = _size(_body(request, {"size": int}))
        found = self._konnector.volume(volume)
        shown = volume_changes.resize(found, size)
        return 200, {"size": found.attachment.size, "reattach": not shown}

    def confirm(self, request: Request, volume: str) -> tuple[int, Any]:
        """Attach it again, since its attachment is valid."""
        return 200, self._konnector.confirm(volume, _attachment(request)).to_data()

    def revoke(self, request: Request, volume: str) -> tuple[int, Any]:
        """Stop serving it."""
        return 200, {"forgotten": self._konnector.revoke(volume, _attachment(request))}

    def set_log(self, request: Request, volume: str) -> tuple[int, Any]:
        """Switch the log of requests."""
        on = _body(request, {"on": bool}).get("on")
        if on is None:
            raise CallerError("`on` is missing, expected true or false")
        found = self._konnector.volume(volume)
        volume_changes.set_log(found, on)
        return 200, found.to_data()

    def show_counters(self, request: Request, volume: str) -> tuple[int, Any]:
        """Return the counts."""
        found = self._konnector.volume(volume).counters()
        data = {name: getattr(found, name) for name in found.__slots__ if not name.endswith("latency")}
        for name, histogram in (("read", found.read_latency), ("write", found.write_latency)):
            data |= {f"{name}_p50": histogram.quantile(0.5), f"{name}_p99": histogram.quantile(0.99)}
        return 200, data

    def show_locality(self, request: Request, volume: str) -> tuple[int, Any]:
        """Where it lies."""
        found = self._konnector.volume(volume).locality()
        return 200, {"rbd": None if found is None else found.to_data()}

    def measure(self, request: Request, volume: str) -> tuple[int, Any]:
        """Begin to measure it, unless a measurement runs: 202."""
        seconds = _body(request, {"seconds": int}).get("seconds")
        if isinstance(seconds, bool) or seconds is None or not 1 <= seconds <= _LONGEST_FIGURE:
            raise CallerError(f"`seconds` is `{json.dumps(seconds)}`, expected 1 to {_LONGEST_FIGURE} for each figure")
        return 202, self._konnector.measure(volume, seconds).to_data()

    def show_measurement(self, request: Request, volume: str) -> tuple[int, Any]:
        """Return the progress of the measurement."""
        return 200, self._konnector.measurement(volume).to_data()


def json_response(status: int, data: Any, request: str) -> Response:
    """Return an answer to the request with this id; ``data`` None is an answer without a body."""
    body = json.dumps(data).encode() + b"\n" if data is not None else b""
    return Response(body, status, {REQUEST_ID: request}, content_type="application/json")


def _attachment(request: Request) -> str:
    """
    :raises CallerError: when the body names no attachment
    """
    attachment: str | None = _body(request, {"attachment": str}).get("attachment")
    if not attachment:
        raise CallerError("`attachment` is missing, expected the id of an attachment")
    return attachment


def _limits(data: Mapping[str, Any]) -> VolumeLimits:
    """
    :raises CallerError: for a value that is not a rate
    """
    for name, value in data.items():
        if name not in VolumeLimits.__slots__:
            raise CallerError(f"unknown limit `{name}`, expected {', '.join(VolumeLimits.__slots__)}")
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < _FASTEST:
            raise CallerError(f"`{name}` is `{json.dumps(value)}`, expected a rate per second, or 0 for none")
    return VolumeLimits(**data)


def _size(data: Mapping[str, Any]) -> int:
    """Return the size for users in bytes; 0 when it is not given.

    :raises CallerError: when no block device can have this size
    """
    size: int = data.get("size", 0)
    if isinstance(size, bool) or size < 0 or size % _SECTOR:
        raise CallerError(f"`size` is `{json.dumps(size)}`, expected bytes, a multiple of {_SECTOR}")
    return size


def _volume_id(text: str) -> str:
    try:
        return str(uuid.UUID(text))
    except ValueError as error:
        raise CallerError(f"`{text}` is not a volume's id, expected a UUID") from error


def _body(request: Request, known: Mapping[str, type | tuple[type, ...]]) -> Mapping[str, Any]:
    """Return the object in the body.

    :param known: its fields, and their types
    :raises CallerError: when it is not an object, or has a field that is unknown or of another type
    """
    try:
        data = json.loads(request.get_data() or b"{}")
    except (ValueError, RecursionError) as error:
        raise CallerError(f"the body is not JSON: {error}") from error
    if not isinstance(data, dict):
        raise CallerError("the body is not an object")
    for name, value in data.items():
        if name not in known:
            raise CallerError(f"unknown field `{name}`, expected {', '.join(known) or 'none'}")
        if not isinstance(value, known[name]):
            said = f" is `{json.dumps(value)}`" if name != "secret" else ""
            raise CallerError(f"`{name}`{said}, expected {_JSON[known[name]]}")
    return data


def _decoded(decode: Callable[[Mapping[str, Any]], T], data: Any) -> T:
    try:
        return decode(data)
    except DecodeError as error:
        raise CallerError(str(error)) from error
