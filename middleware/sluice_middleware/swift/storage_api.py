"""Imports of the usage reader from Swift: databases of accounts and containers, storage policies, drives."""

from __future__ import annotations

import os
import sqlite3
from typing import Any, NoReturn

from swift.account.backend import DATADIR as ACCOUNTS
from swift.account.backend import AccountBroker
from swift.common.constraints import check_drive
from swift.common.exceptions import LockTimeout
from swift.common.ring import RingData
from swift.common.ring.utils import is_local_device
from swift.common.storage_policy import POLICIES, reload_storage_policies
from swift.common.utils import Timestamp, config_true_value, set_swift_dir, whataremyips
from swift.container.backend import DATADIR as CONTAINERS
from swift.container.backend import ContainerBroker


class _WithoutQuarantine:
    """Does not move a damaged database, as Swift's own daemons do."""

    def quarantine(self, reason: str) -> NoReturn:
        raise sqlite3.DatabaseError(reason)


class AccountDatabase(_WithoutQuarantine, AccountBroker):  # type: ignore[misc]
    """The database of an account."""


class ContainerDatabase(_WithoutQuarantine, ContainerBroker):  # type: ignore[misc]
    """The database of a container."""


def use_swift_dir(folder: str) -> None:
    """Read swift.conf in ``folder``; it was read from /etc/swift when this module was imported."""
    if set_swift_dir(folder):
        reload_storage_policies()


def ring_devices(name: str, folder: str) -> list[dict[str, Any]]:
    """The devices of the ring ``name`` in ``folder``, without reading its partitions.

    :raises OSError: when it cannot be read
    :raises ValueError: when the file is no ring
    """
    ring = RingData.load(os.path.join(folder, f"{name}.ring.gz"), metadata_only=True)
    return [device for device in ring.devs if device is not None]
