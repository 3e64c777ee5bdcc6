"""The headers of a request as a request filter may see and change them."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any, Final

from sluice_filters.visits import Headers

Env = dict[str, Any]

#: Headers that no visit sees or sets: the system's own, and those that are ``Call.size``.
_HIDDEN: Final = (
    "HTTP_X_BACKEND_",
    "HTTP_X_OBJECT_SYSMETA_",
    "HTTP_X_OBJECT_TRANSIENT_SYSMETA_",
    "HTTP_TRANSFER_ENCODING",
    "HTTP_CONTENT_LENGTH",
    "HTTP_CONTENT_TYPE",
)


@functools.lru_cache(maxsize=1024)
def _shown(name: str) -> str:
    """What a visit calls ``name`` of the environment; empty when it does not see it."""
    seen = name.startswith("HTTP_") and not name.startswith(_HIDDEN)
    return name[5:].replace("_", "-").title() if seen else ""


def request_headers(env: Env) -> Headers:
    """The headers of a request that a visit may know."""
    found = Headers()
    dict.update(found, {shown: value for name, value in env.items() if (shown := _shown(name))})
    if env.get("CONTENT_TYPE"):
        found["Content-Type"] = env["CONTENT_TYPE"]
    return found


def write_headers(env: Env, headers: Headers) -> None:
    """Make ``headers`` those of the request, as far as a visit may."""
    wanted = {"HTTP_" + name.upper().replace("-", "_"): value for name, value in headers.items()}
    kind = wanted.pop("HTTP_CONTENT_TYPE", None)
    if kind is None:
        env.pop("CONTENT_TYPE", None)
    else:
        env["CONTENT_TYPE"] = kind
    wanted = {name: value for name, value in wanted.items() if not name.startswith(_HIDDEN)}
    for name in [name for name in env if name.startswith("HTTP_") and not name.startswith(_HIDDEN)]:
        if name not in wanted:
            del env[name]
    env.update(wanted)


def set_headers(env: Env, headers: Mapping[str, str]) -> None:
    """Give the request ``headers`` besides those that it has."""
    for name, value in headers.items():
        folded = name.upper().replace("-", "_")
        env[folded if folded in ("CONTENT_TYPE", "CONTENT_LENGTH") else f"HTTP_{folded}"] = value
