"""What single object servers have of an object: whether it is proven that it is not made from a copy any more."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from sluice_core.errors import DecodeError, PeerError
from sluice_middleware.motifs.object_views import ObjectViews, target_of, view_of
from sluice_middleware.swift import green
from sluice_middleware.swift.direct_api import (
    POLICIES,
    DirectClientException,
    Timeout,
    Timestamp,
    direct_head_object,
)
from sluice_middleware.wsgi.policy_lookup import Target
from sluice_middleware.wsgi.stored_object import StoredObject
from sluice_middleware.wsgi.swift_client import SwiftClient
from sluice_motifs.api import COPY
from sluice_motifs.storage.copies import Reference

#: When a server has an object written or deleted, and what it is.
Found = tuple[Timestamp | None, StoredObject | None]
_PATIENCE: Final = {"conn_timeout": 2.0, "response_timeout": 10.0}
_MISSING: Final = 404
_TIMESTAMP: Final = "X-Backend-Timestamp"
_POLICY: Final = "X-Backend-Storage-Policy-Index"


class ObjectProofs:
    """
    :param final: Swift's proxy application itself, which has the rings
    """

    def __init__(self, client: SwiftClient, final: Any) -> None:
        self._client = client
        self._views = ObjectViews(client.app)
        self._final = final

    def outlived(self, reference: Reference) -> bool:
        """As ``SweptCopies.outlived``.

        One server with a later version that does not name the copy, or with a later tombstone, is enough: Swift brings
        it to all others.  Else all primary servers must answer, and neither they nor the newest state that a proxy
        finds, on handoffs, too, may name it.
        """
        target = target_of(reference.item)
        if target is None:
            return True
        written, found = Timestamp(reference.version), self._find(target)
        if any(
            time is not None and Timestamp(time.normal) > written and not _names(stored, reference)
            for time, stored in filter(None, found)
        ):
            return True
        if None in found or any(_names(stored, reference) for _, stored in filter(None, found)):
            return False
        newest = self._views.stored(reference.item)
        return newest is None or not (newest.contracted or _names(newest, reference))

    def _policies(self, account: str, container: str) -> Sequence[int]:
        """Indices of the storage policies that the object may have."""
        headers = self._client.container_headers(account, container)
        if headers is None or not headers.get(_POLICY.lower(), "").isdecimal():
            return [int(one) for one in POLICIES]
        return [int(headers[_POLICY.lower()])]

    def _find(self, target: Target) -> Sequence[Found | None]:
        return [found for policy in self._policies(*target[:2]) for found in self._ask(target, policy)]

    def _ask(self, target: Target, policy: int) -> Sequence[Found | None]:
        """What each primary server has: when it was written or deleted, and what it is; None of one that is silent."""
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


def _names(stored: StoredObject | None, reference: Reference) -> bool:
    """Whether what a server has names the copy; so does what cannot be read."""
    if stored is None:
        return False
    try:
        motifs = view_of(reference.item, stored).record.motifs
    except DecodeError:
        return True
    return any(one.params.get(COPY) == reference.copy for one in motifs)
