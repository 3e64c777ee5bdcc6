"""The client's methods: their signatures, and their requests with few and with all arguments."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any, Final

from sluice_client.errors import ClientError
from sluice_client.rest.auth import IDEMPOTENCY_HEADER, Request
from sluice_client.rest.client import Client
from sluice_client.rest.transport import ApiResponse, Retries, Transport

#: Annotation → the given value; any other annotation gets a text with the parameter's name.
_VALUES: Final[dict[str, Any]] = {
    "bool": True,
    "float": 7.5,
    "int": 3,
    "int | None": 3,
    "Mapping[str, Any]": {"given": "value"},
    "Mapping[str, Any] | None": {"given": "value"},
    "Sequence[str]": ("one", "two"),
    "bytes | IO[bytes]": b"code",
}
#: Methods that make no request by themselves, or for a given path.
_OTHERS: Final = frozenset({"close", "collection", "delete", "from_session", "get", "put", "uploads"})


class Answer(dict[str, Any]):
    """A response with an empty list in every field."""

    def __missing__(self, name: str) -> list[Any]:
        return []

    def get(self, name: str, default: Any = None) -> Any:
        """The empty list; None for the next page."""
        return default if name == "next_marker" else []


class RecordingTransport(Transport):
    """Records requests, and answers each of them."""

    def __init__(self) -> None:
        super().__init__(None, Retries())  # type: ignore[arg-type]
        self.sent: list[dict[str, Any]] = []

    def request(self, request: Request) -> ApiResponse:
        """Called by the client."""
        sent = asdict(request)
        sent["headers"] = {
            name: "a key" if name == IDEMPOTENCY_HEADER else value for name, value in request.headers.items()
        }
        sent["data"] = repr(request.data)
        self.sent.append({name: value for name, value in sent.items() if value or (value == {} and name == "body")})
        return ApiResponse(b"text" if request.raw else Answer())


def collect_client_calls() -> dict[str, Any]:
    """Method → its signature, and lists of requests."""
    found = {}
    for name, method in inspect.getmembers(Client, inspect.isfunction):
        if not name.startswith("_") and name not in _OTHERS:
            signature = inspect.signature(method)
            found[name] = [str(signature), *(_sent(name, given) for given in _arguments(signature))]
    return found


def _arguments(signature: inspect.Signature) -> Iterator[dict[str, Any]]:
    parameters = [one for name, one in signature.parameters.items() if name != "self"]
    plain = [one for one in parameters if one.kind is not inspect.Parameter.VAR_KEYWORD]
    further = {"further": "value"} if len(plain) < len(parameters) else {}
    yield {one.name: _value(one) for one in plain if one.default is inspect.Parameter.empty}
    yield {one.name: _value(one) for one in plain} | further


def _value(parameter: inspect.Parameter) -> Any:
    return _VALUES.get(str(parameter.annotation), f"a {parameter.name}/é")


def _sent(name: str, given: dict[str, Any]) -> list[Any]:
    client = Client("http://127.0.0.1:1")
    transport = RecordingTransport()
    client._transport = transport
    try:
        answer = getattr(client, name)(**given)
        if inspect.isgenerator(answer):
            list(answer)
    except (ClientError, TypeError) as error:
        return [*transport.sent, type(error).__name__]
    return transport.sent
