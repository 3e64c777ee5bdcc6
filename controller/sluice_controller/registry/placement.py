"""Where a tenant's new containers go: entries of kind ``placement``, which nodes keep and proxies obey."""

from __future__ import annotations

import difflib
from typing import Final

from sluice_controller.catalog import entries
from sluice_controller.catalog.backend import Backend
from sluice_controller.catalog.entries import Page, RecordKind, StoredRecord
from sluice_controller.errors import check_version
from sluice_controller.registry.swift_client import SwiftClient
from sluice_core.errors import CallerError, NotFound
from sluice_core.messages.registry import PLACEMENT, Placement

_PLACEMENTS: Final = RecordKind(Placement, PLACEMENT, "placement of account")


def list_placements(
    backend: Backend, limit: int, marker: str = "", storage_policy: str = ""
) -> Page[StoredRecord[Placement]]:
    """Placements by account, of one storage policy if given."""
    known = _PLACEMENTS.list_all(backend)
    wanted = {
        name: one for name, one in known.items() if storage_policy.lower() in ("", one.record.storage_policy.lower())
    }
    return entries.page(wanted, limit, marker)


find = _PLACEMENTS.find


def put(
    backend: Backend, door: SwiftClient, account: str, storage_policy: str, by: str, expected: int | None = None
) -> tuple[StoredRecord[Placement], bool]:
    """Say where new containers go; and whether nothing was said before.

    :raises CallerError: when Swift has no such storage policy
    """
    refuse_unknown_policy(door, storage_policy)
    new = Placement(account, storage_policy)
    try:
        old = find(backend, account, expected)
    except NotFound:
        check_version(f"placement of account `{account}`", 0, expected)
        return entries.create(backend, new, by), True
    return entries.update(backend, old, new, by), False


def delete(backend: Backend, account: str, by: str, expected: int | None = None) -> int:
    """Leave new containers to Swift's default; the epoch of the change."""
    return _PLACEMENTS.drop(backend, find(backend, account, expected), by).epoch


def refuse_unknown_policy(door: SwiftClient, name: str) -> None:
    """
    :raises CallerError: when ``name`` is no storage policy of Swift's, naming the nearest
    """
    known = door.storage_policies()
    if name.lower() not in {one.lower() for one in known}:
        near = difflib.get_close_matches(name, known, 1)
        hint = f"did you mean `{near[0]}`" if near else f"expected {' or '.join(f'`{one}`' for one in known)}"
        raise CallerError(f"swift has no storage policy `{name}`, {hint}")
