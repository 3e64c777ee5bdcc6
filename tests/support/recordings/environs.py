"""Environs as Swift's auth middlewares pass them on, recorded by :mod:`.record_environs`."""

import json
from pathlib import Path
from typing import Any, Final

PATH: Final = Path(__file__).with_name("environs.json")


def environ(name: str) -> dict[str, Any]:
    """The recorded environ ``name``, as it is when the proxy has authorized the request."""
    found = _RECORDED[name]
    return {**found["before"], **found["after"]}


def _restored(value: Any) -> Any:
    """The value of a JSON form; an object of which only the type was kept stays that description."""
    if isinstance(value, list):
        return [_restored(one) for one in value]
    if not isinstance(value, dict):
        return value
    if value.keys() == {"tuple"}:
        return tuple(_restored(one) for one in value["tuple"])
    return {name: _restored(one) for name, one in value.items()}


_RECORDED: Final = _restored(json.loads(PATH.read_text(encoding="utf-8")))["environs"] if PATH.exists() else {}
