"""Storage policies: the placement of a tenant's new containers, and the location of devices in Swift's own files.

Placements are entries of kind ``placement``, which nodes keep and proxies apply.

``list_endpoints`` gives only addresses.  The devices' regions, zones and replication addresses are in the header of a
ring file, as JSON, so they are read without Swift where the API has the file (option ``swift_dir``).  ``swift.conf``
tells whether a storage policy is erasure-coded.  Both are read at each request, so new rings are used at once.
"""

from __future__ import annotations

import configparser
import difflib
import gzip
import json
import struct
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from sluice_controller.catalog import entries
from sluice_controller.catalog.backend import Backend
from sluice_controller.catalog.entries import Page, RecordKind, StoredRecord
from sluice_controller.errors import check_version
from sluice_controller.registry.swift_client import SwiftClient
from sluice_core.errors import CallerError, NotFound, PeerError
from sluice_core.messages.registry import PLACEMENT, Placement

_MAGIC: Final = b"R1NG"
#: Version of a ring file → the parts before the device list: number of blobs to skip, and the form of their length.
_FORMATS: Final = {1: (0, "!I"), 2: (1, "!Q")}
#: A larger header is not valid.
_LARGEST_HEAD: Final = 64 << 20

_PLACEMENTS: Final = RecordKind(Placement, PLACEMENT, "placement of account")


@dataclass(frozen=True, slots=True)
class Device:
    """The location of a device; the address is the one for replication."""

    region: int
    zone: int
    replication_address: str
    replication_port: int


@dataclass(frozen=True, slots=True)
class StoragePolicy:
    """``type`` is replication or erasure_coding; ``fragments`` that differ, 0 for replicas; ``needed`` to read."""

    name: str
    type: str
    fragments: int = 0
    needed: int = 1

    def fragment(self, number: int) -> int | None:
        """The number of the fragment on the ``number``-th device; None for a replica."""
        return number % self.fragments if self.fragments else None


def devices(folder: str, index: int) -> dict[tuple[str, int, str], Device]:
    """Address, port and name of each device of a storage policy → its location.

    :raises PeerError: when its ring cannot be read
    """
    path = Path(folder) / ("object.ring.gz" if index == 0 else f"object-{index}.ring.gz")
    try:
        found = [one for one in _listed(path) if one is not None]
        return {(one["ip"], int(one["port"]), one["device"]): _device(one) for one in found}
    except (OSError, EOFError, ValueError, KeyError, TypeError, struct.error, zlib.error) as error:
        raise PeerError(f"ring `{path}` cannot be read: {type(error).__name__}") from error


def storage_policy(folder: str, index: int) -> StoragePolicy:
    """The properties of a storage policy in ``swift.conf``.

    :raises PeerError: when it cannot be read
    """
    path = Path(folder) / "swift.conf"
    parser = configparser.RawConfigParser()
    try:
        with path.open(encoding="utf-8") as file:
            parser.read_file(file)
        section = f"storage-policy:{index}"
        if not parser.has_section(section) and index == 0:
            return StoragePolicy("Policy-0", "replication")
        return _policy(parser[section])
    except (OSError, ValueError, KeyError, configparser.Error) as error:
        raise PeerError(f"storage policy {index} cannot be read in `{path}`: {type(error).__name__}") from error


def _policy(said: Mapping[str, str]) -> StoragePolicy:
    if said.get("policy_type", "replication") != "erasure_coding":
        return StoragePolicy(said["name"], "replication")
    data, parity = int(said["ec_num_data_fragments"]), int(said["ec_num_parity_fragments"])
    return StoragePolicy(said["name"], "erasure_coding", data + parity, data)


def _listed(path: Path) -> list[dict[str, Any] | None]:
    with gzip.open(path) as file:
        magic, version = struct.unpack("!4sH", file.read(6))
        if magic != _MAGIC or version not in _FORMATS:
            raise ValueError("not a ring of a version that is known")
        skipped, size = _FORMATS[version]
        for _ in range(skipped):
            _blob(file, size)
        head = json.loads(_blob(file, size))
    found: list[dict[str, Any] | None] = head if version == 2 else head["devs"]
    return found


def _blob(file: gzip.GzipFile, size: str) -> bytes:
    (length,) = struct.unpack(size, file.read(struct.calcsize(size)))
    if length > _LARGEST_HEAD:
        raise ValueError("the head of the ring is too large")
    return file.read(length)


def _device(one: Mapping[str, Any]) -> Device:
    address, port = one.get("replication_ip") or one["ip"], one.get("replication_port") or one["port"]
    return Device(int(one["region"]), int(one["zone"]), str(address), int(port))


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
    """Set the storage policy of new containers; return whether the account had none before.

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
    """Remove the placement, so that Swift's default holds for new containers; return the epoch of the change."""
    return _PLACEMENTS.drop(backend, find(backend, account, expected), by).epoch


def refuse_unknown_policy(door: SwiftClient, name: str) -> None:
    """
    :raises CallerError: when Swift has no storage policy ``name``; names the nearest one
    """
    known = door.storage_policies()
    if name.lower() not in {one.lower() for one in known}:
        near = difflib.get_close_matches(name, known, 1)
        hint = f"did you mean `{near[0]}`" if near else f"expected {' or '.join(f'`{one}`' for one in known)}"
        raise CallerError(f"swift has no storage policy `{name}`, {hint}")
