"""References to copies: rows of containers that have no objects, as those of Swift's expirer and reconciler.

Theory of operation.  A row counts when a majority of the container's primary servers has it, and references are all
known only when every one of these has answered, and a majority has the database: so a row is missed only if all
servers that took it lost theirs.  A server that is away keeps copies from being removed, and contractions go on with
two of three.

Rows are not written through a proxy, which knows objects only.  They lie in an account of their own, so that nothing
that walks over objects meets them.  The container of a reference is chosen by the digest of its copy, so that none
becomes large.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final
from urllib.parse import quote_from_bytes, unquote_to_bytes

from sluice_core.errors import PeerError
from sluice_middleware.swift import green
from sluice_middleware.swift.direct_api import (
    ClientException,
    Ring,
    Timeout,
    Timestamp,
    direct_delete_container_object,
    direct_get_container,
    direct_put_container_object,
    majority_size,
)
from sluice_motifs.storage.copies import Reference
from sluice_rewrites.accounts import references_account

#: Seconds to reach a server, and to have its answer.
_PATIENCE: Final = {"conn_timeout": 2.0, "response_timeout": 10.0}
_LISTED: Final = 1000
_DONE: Final = 200
_MISSING: Final = 404
#: Digits of a copy's digest that choose the container.
_DIGITS: Final = 2


class ReferenceRows:
    """
    :param ring: of containers
    """

    def __init__(self, ring: Ring, clock: Callable[[], float] = time.time) -> None:
        self._ring = ring
        self._clock = clock

    def add(self, copy: str, item: str, version: str) -> None:
        """Note that an item of a version may be made from a copy.

        :raises PeerError: when no majority of servers has taken it
        """
        headers = {
            "X-Timestamp": Timestamp(self._clock()).internal,
            "X-Size": "0",
            "X-Etag": "0",
            "X-Content-Type": "text/plain",
        }
        row = f"{_digest(copy)}/{version}/{quote_from_bytes(item.encode('utf-8', 'surrogateescape'))}"
        answers = self._ask(copy, lambda *place: direct_put_container_object(*place, row, headers=headers, **_PATIENCE))
        if sum(code == _DONE for code, _ in answers) < majority_size(len(answers)):
            raise PeerError(f"no majority of container servers took a reference to copy `{copy}`")

    def find(self, copy: str) -> list[Reference]:
        """All references to a copy.

        :raises PeerError: when a server did not answer
        """
        answers = self._ask(copy, lambda *place: _rows(place, f"{_digest(copy)}/"))
        codes = [code for code, _ in answers]
        told = codes.count(_DONE)
        # servers without the database are as good as those that lost it: the others must be a majority, or none
        if told + codes.count(_MISSING) < len(codes) or 0 < told < majority_size(len(codes)):
            raise PeerError(f"not all container servers tell the references to copy `{copy}`")
        found: dict[str, str] = {}
        for _, rows in answers:
            for row in rows:
                found[row["name"]] = max(found.get(row["name"], ""), row["last_modified"])
        return [self._reference(copy, name, written) for name, written in found.items()]

    def drop(self, reference: Reference) -> None:
        """Remove a reference, unless it was added again since it was found."""
        headers = {"X-Timestamp": Timestamp(float(reference.stamp), offset=1).internal}
        row = f"{_digest(reference.copy)}/{reference.version}/"
        row += quote_from_bytes(reference.item.encode("utf-8", "surrogateescape"))
        self._ask(
            reference.copy, lambda *place: direct_delete_container_object(*place, row, headers=headers, **_PATIENCE)
        )

    def _ask(
        self, copy: str, request: Callable[..., Sequence[Mapping[str, Any]] | None]
    ) -> Sequence[tuple[int, Sequence[Mapping[str, Any]]]]:
        """Status and rows of each primary server of a copy's references; status 0 of one that does not answer.

        :param request: takes server, partition, account and container
        """
        account, container = references_account(copy.partition("/")[0]), f"references-{_digest(copy)[:_DIGITS]}"
        part, nodes = self._ring.get_nodes(account, container)

        def ask(node: Any) -> tuple[int, Sequence[Mapping[str, Any]]]:
            try:
                return _DONE, request(node, part, account, container) or ()
            except ClientException as error:
                return error.http_status, ()
            except (OSError, Timeout, ValueError):
                return 0, ()

        return green.map_concurrently(ask, nodes, len(nodes))

    def _reference(self, copy: str, row: str, written: str) -> Reference:
        _, version, item = row.split("/", 2)
        seconds = datetime.fromisoformat(written).replace(tzinfo=UTC).timestamp()
        name = unquote_to_bytes(item).decode("utf-8", "surrogateescape")
        return Reference(copy, name, version, self._clock() - seconds, Timestamp(seconds).normal)


def _rows(place: tuple[Any, ...], prefix: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    while True:
        marker = found[-1]["name"] if found else ""
        _, rows = direct_get_container(*place, marker=marker, limit=_LISTED, prefix=prefix, **_PATIENCE)
        found += rows
        if len(rows) < _LISTED:
            return found


def _digest(copy: str) -> str:
    return copy.rpartition("/")[2]
