"""The operations of an API by name, from its OpenAPI document.

A request is made from the operation's parameters, and an answer is checked against its description: a test that reads a
missing field fails, and so does an API that violates its own description.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import quote, urlencode

from jsonschema import Draft202012Validator

JSON: Final = "application/json"
#: Methods of HTTP among the keys of a path in an OpenAPI document.
_METHODS: Final = ("get", "put", "post", "delete")


class UndescribedAnswer(Exception):
    """An answer that contradicts the document."""


@dataclass(frozen=True, slots=True)
class Operation:
    """One call; ``parameters`` maps keyword arguments to the place of a parameter (path, query, header) and its name.

    A keyword argument is the parameter's name in lower case with ``_`` for ``-``.
    """

    name: str
    method: str
    path: str
    parameters: Mapping[str, tuple[str, str]]
    content_type: str
    responses: Mapping[str, Any]

    @property
    def success(self) -> list[int]:
        """The statuses of successful answers."""
        return [int(status) for status in self.responses if status < "400"]

    def request(self, given: Mapping[str, Any]) -> tuple[str, dict[str, str]]:
        """Return the relative URL and the headers of a request with these parameters.

        :raises TypeError: for an unknown parameter, or a missing one of the path
        """
        unknown = sorted(set(given) - set(self.parameters))
        if unknown:
            raise TypeError(f"`{self.name}` has no parameter `{unknown[0]}`, it has {', '.join(self.parameters)}")
        path = self.path
        query: dict[str, str] = {}
        headers: dict[str, str] = {}
        for argument, (place, name) in self.parameters.items():
            if argument not in given:
                if place == "path":
                    raise TypeError(f"`{self.name}` needs the parameter `{argument}`")
                continue
            value = _text(given[argument])
            if place == "path":
                path = path.replace(f"{{{name}}}", quote(value, safe=""))
            else:
                (query if place == "query" else headers)[name] = value
        return f"{path}?{urlencode(query)}" if query else path, headers


class Description:
    """The content of an OpenAPI ``document``."""

    def __init__(self, document: Mapping[str, Any]) -> None:
        self._components = document["components"]
        self._operations = {one.name: one for one in _operations(document)}

    def operation(self, name: str) -> Operation:
        """Return the operation with the id ``name``.

        :raises AttributeError: if there is none
        """
        if name not in self._operations:
            near = difflib.get_close_matches(name, self._operations, 1)
            hint = f", did you mean `{near[0]}`?" if near else ""
            raise AttributeError(f"the API has no operation `{name}`{hint}")
        return self._operations[name]

    def check(self, operation: Operation, status: int, body: Any) -> None:
        """Check the data of a JSON answer, None for an empty one, against the description.

        :raises UndescribedAnswer: if they differ
        """
        described = operation.responses[str(status)].get("content", {}).get(JSON)
        if described is None:
            if body is not None:
                raise UndescribedAnswer(f"`{operation.name}` answered {status} with a body, expected none")
            return
        schema = {**described["schema"], "components": self._components}
        for error in Draft202012Validator(schema).iter_errors(body):
            raise UndescribedAnswer(f"`{operation.name}` answered {status}, at {error.json_path}: {error.message}")


def _operations(document: Mapping[str, Any]) -> Iterator[Operation]:
    for path, methods in document["paths"].items():
        for method in _METHODS:
            if method in methods:
                described = methods[method]
                parameters = {
                    _argument(one["name"]): (one["in"], one["name"]) for one in described.get("parameters", ())
                }
                content_type = next(iter(described.get("requestBody", {}).get("content", ())), "")
                yield Operation(
                    described["operationId"], method.upper(), path, parameters, content_type, described["responses"]
                )


def _argument(name: str) -> str:
    return name.lower().replace("-", "_")


def _text(value: Any) -> str:
    """Booleans in the form that the API reads."""
    return str(value).lower() if isinstance(value, bool) else str(value)
