"""Headers between proxy and storage nodes: filters to run, and refusals."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any, Final

from sluice_core.errors import PeerError
from sluice_middleware.swift.proxy_api import close_if_possible
from sluice_middleware.wsgi import sysmeta
from sluice_middleware.wsgi.policy_lookup import SelectedFilter
from sluice_middleware.wsgi.response import Env, UpstreamResponse

#: The name of Sluice's own requests in Swift's logs.
SOURCE: Final = "SLU"


class RefusedByStorageNode(PeerError):
    """A storage node refuses the request."""


def encode_steps(chosen: Sequence[SelectedFilter]) -> list[dict[str, Any]]:
    """Encode filters for a storage node."""
    return [{"f": one.filter.info.keyword, "v": one.filter.info.version, "p": dict(one.step.params)} for one in chosen]


def write_steps(env: Env, chosen: Sequence[SelectedFilter]) -> None:
    """Name the filters that storage nodes run in a header of the PUT."""
    if chosen:
        env[sysmeta.NODE_ENV] = json.dumps(encode_steps(chosen), separators=(",", ":"), sort_keys=True)


def raise_if_refused(answer: UpstreamResponse) -> None:
    """Close a response that is a refusal.

    :raises RefusedByStorageNode: when storage nodes refused, with their reason
    """
    if answer.status.startswith("409"):
        reason = sysmeta.find_header(answer.headers, sysmeta.REFUSED)
        if reason is None and answer.status != sysmeta.REFUSED_STATUS:
            return
        said = drain(answer.body).decode("utf-8", "replace").strip()
        raise RefusedByStorageNode(f"a storage node refused: {reason or said}")


def drain(body: Iterable[bytes], limit: int = 1000) -> bytes:
    """Read a body to its end, close it, and return its first bytes."""
    kept = bytearray()
    try:
        for piece in body:
            kept += piece[: limit - len(kept)]
    finally:
        close_if_possible(body)
    return bytes(kept)
