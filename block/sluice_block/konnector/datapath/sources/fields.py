"""Fields of connections."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sluice_core.errors import CallerError


def text_field(data: Mapping[str, Any], name: str, kind: str) -> str:
    """The text ``name`` of a connection of type ``kind``.

    :raises CallerError: when there is none
    """
    value = data.get(name)
    if not isinstance(value, str) or not value:
        raise CallerError(f"connection of type `{kind}` has no `{name}`")
    return value
