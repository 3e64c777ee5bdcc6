"""References to copies: rows of containers without objects, as those of Swift's expirer and reconciler.

Theory of operation.  A row counts when a majority of the container's primary servers has it, and all references are
known only when every one of these has answered, and a majority has the database: so a row is missed only if all
servers that stored it lost theirs.  An unreachable server prevents the removal of copies; contractions continue with
two of three.

Rows are not written through a proxy, which only writes rows of objects.  They are in an account of their own, so that
no walk over objects finds them.  The digest of its copy chooses the container of a reference, so that no container
becomes large.

A reference may go once object servers prove that its item is not made from the copy any more.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final
from urllib.parse import quote_from_bytes, unquote_to_bytes

from sluice_core.errors import DecodeError, PeerError
from sluice_middleware.motifs.object_views import ObjectViews, target_of, view_of
from sluice_middleware.swift import green
from sluice_middleware.swift.internal_api import (
    POLICIES,
    ClientException,
    DirectClientException,
    Ring,
    Timeout,
    Timestamp,
    direct_delete_container_object,
    direct_get_container,
    direct_head_object,
    direct_put_container_object,
    majority_size,
)
from sluice_middleware.wsgi.internal_client import SwiftClient
from sluice_middleware.wsgi.policy_lookup import Target
from sluice_middleware.wsgi.stored_object import StoredObject
from sluice_motifs.api import COPY
from sluice_motifs.storage.shim import Reference
from sluice_rewrites.accounts import references_account

#: Seconds to reach a server, and to get its response.
_PATIENCE: Final = {"conn_timeout": 2.0, "response_timeout": 10.0}
_LISTED: Final = 1000
_DONE: Final = 200
_MISSING: Final = 404
#: Digits of a copy's digest that choose the container.
_DIGITS: Final = 2
#: When an object was written or deleted on a server, and its state.
Found = tuple[Timestamp | None, StoredObject | None]
_TIMESTAMP: Final = "X-Backend-Timestamp"
_POLICY: Final = "X-Backend-Storage-Policy-Index"


class ReferenceRows:
    """
    :param ring: of containers
    """

    def __init__(self, ring: Ring, clock: Callable[[], float] = time.time) -> None:
        self._ring = ring
        self._clock = clock

    def add(self, copy: str, item: str, version: str) -> None:
        """Record that a version of an item may be made from a copy.

        :raises PeerError: when no majority of servers has stored it
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
        answered = codes.count(_DONE)
        # servers without the database count like those that lost it: the others must be a majority, or none
        if answered + codes.count(_MISSING) < len(codes) or 0 < answered < majority_size(len(codes)):
            raise PeerError(f"not all container servers tell the references to copy `{copy}`")
        latest: dict[str, str] = {}
        for _, rows in answers:
            for row in rows:
                latest[row["name"]] = max(latest.get(row["name"], ""), row["last_modified"])
        return [self._reference(copy, name, written) for name, written in latest.items()]

    def drop(self, reference: Reference) -> None:
        """Remove a reference, unless it was added again since it was read."""
        headers = {"X-Timestamp": Timestamp(float(reference.stamp), offset=1).internal}
        row = f"{_digest(reference.copy)}/{reference.version}/"
        row += quote_from_bytes(reference.item.encode("utf-8", "surrogateescape"))
        self._ask(
            reference.copy, lambda *place: direct_delete_container_object(*place, row, headers=headers, **_PATIENCE)
        )

    def _ask(
        self, copy: str, request: Callable[..., Sequence[Mapping[str, Any]] | None]
    ) -> Sequence[tuple[int, Sequence[Mapping[str, Any]]]]:
        """Status and rows of each primary server of a copy's references; status 0 for one that does not answer.

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
    listed: list[dict[str, Any]] = []
    while True:
        marker = listed[-1]["name"] if listed else ""
        _, rows = direct_get_container(*place, marker=marker, limit=_LISTED, prefix=prefix, **_PATIENCE)
        listed += rows
        if len(rows) < _LISTED:
            return listed


def _digest(copy: str) -> str:
    return copy.rpartition("/")[2]


class ObjectProofs:
    """The states of an object on single servers: whether it is proven that it is no longer made from a copy.

    :param final: Swift's proxy application itself, which has the rings
    """

    def __init__(self, client: SwiftClient, final: Any) -> None:
        self._client = client
        self._views = ObjectViews(client.app)
        self._final = final

    def outlived(self, reference: Reference) -> bool:
        """As ``SweptCopies.outlived``.

        One server with a later version that does not name the copy, or with a later tombstone, is enough: Swift
        replicates it to all others.  Otherwise all primary servers must answer, and neither they nor the newest state
        that a proxy finds, on handoffs, too, may name it.
        """
        target = target_of(reference.item)
        if target is None:
            return True
        written, states = Timestamp(reference.version), self._find(target)
        if any(
            time is not None and Timestamp(time.normal) > written and not _names_copy(stored, reference)
            for time, stored in filter(None, states)
        ):
            return True
        if None in states or any(_names_copy(stored, reference) for _, stored in filter(None, states)):
            return False
        newest = self._views.stored(reference.item)
        return newest is None or not (newest.contracted or _names_copy(newest, reference))

    def _policies(self, account: str, container: str) -> Sequence[int]:
        """Indices of the storage policies that the object may have."""
        headers = self._client.container_headers(account, container)
        if headers is None or not headers.get(_POLICY.lower(), "").isdecimal():
            return [int(one) for one in POLICIES]
        return [int(headers[_POLICY.lower()])]

    def _find(self, target: Target) -> Sequence[Found | None]:
        return [found for policy in self._policies(*target[:2]) for found in self._ask(target, policy)]

    def _ask(self, target: Target, policy: int) -> Sequence[Found | None]:
        """The state on each primary server: time of the last write or deletion, and headers; None for a silent one."""
        part, nodes = self._final.get_object_ring(policy).get_nodes(*target)

        def ask(node: Any) -> Found | None:
            try:
                headers = direct_head_object(node, part, *target, headers={_POLICY: str(policy)}, **_PATIENCE)
                stored = StoredObject(list(headers.items()))
                return Timestamp(stored.data_timestamp), stored
            except DirectClientException as error:
                if error.http_status != _MISSING:
                    return None
                deleted = error.http_headers.get(_TIMESTAMP)
                return Timestamp(deleted) if deleted else None, None
            except (OSError, Timeout, DecodeError, PeerError):
                return None

        return green.map_concurrently(ask, nodes, len(nodes))


def _names_copy(stored: StoredObject | None, reference: Reference) -> bool:
    """Whether a server's state names the copy; True for a state that cannot be read."""
    if stored is None:
        return False
    try:
        motifs = view_of(reference.item, stored).record.motifs
    except DecodeError:
        return True
    return any(one.params.get(COPY) == reference.copy for one in motifs)
