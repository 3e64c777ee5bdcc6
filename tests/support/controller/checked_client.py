"""A client that validates every response against the API's own schema."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from drf_spectacular.generators import SchemaGenerator
from jsonschema import Draft202012Validator
from rest_framework.test import APIClient


@lru_cache(maxsize=1)
def schema() -> dict[str, Any]:
    """The API's own description."""
    found: dict[str, Any] = SchemaGenerator().get_schema(request=None, public=True)
    return found


def operation(method: str, path: str) -> dict[str, Any] | None:
    """The schema's operation of ``method`` on ``path``; None without one."""
    plain = path.partition("?")[0]
    paths = schema()["paths"]
    # a named part is preferred to a parameter
    for template, methods in sorted(paths.items(), key=lambda item: (item[0] != plain, item[0].count("{"))):
        if _fits(template.split("/"), plain.split("/")):
            found: dict[str, Any] | None = methods.get(method.lower())
            return found
    return None


def _fits(template: list[str], path: list[str]) -> bool:
    return len(template) == len(path) and all(
        one == other or one.startswith("{") for one, other in zip(template, path, strict=True)
    )


def validate(response: Any, description: dict[str, Any]) -> None:
    """Validate a response against ``description``, of its operation: status, headers and body."""
    described = description["responses"].get(str(response.status_code))
    assert described, f"{response.status_code} is not described"
    for name in described.get("headers", {}):
        assert name in response.headers or name in ("ETag", "Location"), f"header {name} is missing"
    if "content" not in described:
        assert not response.content, "a body where the schema has none"
        return
    given = response.headers.get("Content-Type", "").partition(";")[0]
    assert given in described["content"] or not response.content, f"`{given}` is not described"
    if given != "application/json":
        return
    body_schema = described["content"]["application/json"]["schema"]
    Draft202012Validator({**body_schema, "components": schema()["components"]}).validate(response.json())


class CheckedClient(APIClient):
    """REST framework's test client; a response that the schema does not describe fails the test."""

    def generic(self, method: str, path: str, *args: Any, **kwargs: Any) -> Any:
        """Called for each request."""
        response = super().generic(method, path, *args, **kwargs)
        found = operation(method, str(path))
        if found:
            validate(response, found)
        return response
