"""Size and free space of this node's devices, and of those of each storage policy.

A file system is counted once, however many folders on it stand for devices.  Free is the space that Swift's user may
fill.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from sluice_middleware.swift import storage_api

log = logging.getLogger(__name__)


class Space(NamedTuple):
    """Bytes."""

    size: int
    free: int

    @property
    def free_share(self) -> float:
        """The free fraction, 0 to 1."""
        return self.free / self.size if self.size else 0.0


@dataclass(frozen=True, slots=True)
class StorageConf:
    """The folder of devices, and that of rings and swift.conf, as a configuration of Swift's servers names them."""

    devices: str = "/srv/node"
    mount_check: bool = True
    swift_dir: str = "/etc/swift"
    bind_ip: str = "0.0.0.0"  # noqa: S104  what Swift takes for all addresses

    def mounted(self) -> Iterator[Path]:
        """The devices that exist, and are mounted if that is to be checked."""
        try:
            names = sorted(os.listdir(self.devices))
        except OSError:
            return
        for name in names:
            try:
                yield Path(storage_api.check_drive(self.devices, name, self.mount_check))
            except ValueError:
                continue


def all_devices(confs: Iterable[StorageConf]) -> list[Path]:
    """The devices of all ``confs``, each once."""
    return list(dict.fromkeys(device for conf in confs for device in conf.mounted()))


def measure_space(devices: Iterable[Path]) -> Space:
    """The space of the file systems of ``devices``; a device that fails is skipped, as by Swift."""
    file_systems: dict[int, Space] = {}
    for device in devices:
        try:
            number, state = os.stat(device).st_dev, os.statvfs(device)
        except OSError as error:
            log.warning("device `%s` is left out: %s", device, error.strerror)
            continue
        file_systems[number] = Space(state.f_blocks * state.f_frsize, state.f_bavail * state.f_frsize)
    return Space(sum(one.size for one in file_systems.values()), sum(one.free for one in file_systems.values()))


def policy_devices(confs: Sequence[StorageConf]) -> Mapping[str, list[Path]]:
    """Storage policy → its devices on this node: those of its ring that are here and have a weight."""
    by_policy: dict[str, list[Path]] = {}
    for conf in confs:
        here = {device.name: device for device in conf.mounted()}
        addresses = storage_api.whataremyips(conf.bind_ip)
        for policy in storage_api.POLICIES:
            for device in _ring_devices(policy, conf.swift_dir):
                path = here.get(device["device"])
                local = storage_api.is_local_device(addresses, None, device["ip"], device["port"])
                if path is not None and local and device["weight"] > 0:
                    by_policy.setdefault(policy.name, []).append(path)
    return by_policy


def _ring_devices(policy: Any, swift_dir: str) -> list[dict[str, Any]]:
    try:
        ring = storage_api.POLICIES.get_object_ring(int(policy), swift_dir)
        return [device for device in ring.devs if device is not None]
    except (OSError, ValueError, RuntimeError) as error:
        log.warning("the ring of storage policy `%s` cannot be read: %s", policy.name, error)
        return []
