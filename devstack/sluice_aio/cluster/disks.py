"""The content of the object servers' disks."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from swift.common.exceptions import DiskFileNotExist
from swift.obj.diskfile import read_metadata


def data_files(devices: Iterable[Path]) -> Iterator[Path]:
    """The newest ``.data`` file of every replica or fragment of every object on ``devices``."""
    for device in devices:
        for objects in device.glob("objects*"):  # a folder per storage policy
            for folder, _, names in os.walk(objects):
                data = [name for name in names if name.endswith(".data")]
                if data:
                    yield Path(folder) / max(data)  # names begin with the timestamp


def stored_bytes(devices: Iterable[Path]) -> int:
    """Bytes of all objects on ``devices``, replicas included."""
    total = 0
    for path in data_files(devices):
        try:
            total += path.stat().st_size
        except FileNotFoundError:  # replaced in the meantime
            continue
    return total


def stored_sizes(devices: Iterable[Path], container: str) -> dict[str, list[int]]:
    """Object name → sizes of its replicas' files; ``container`` is ``account/container``."""
    prefix = f"/{container}/"
    sizes: dict[str, list[int]] = {}
    for path in data_files(devices):
        try:
            name, size = read_metadata(str(path))["name"], path.stat().st_size
        except (FileNotFoundError, DiskFileNotExist):  # replaced in the meantime
            continue
        if name.startswith(prefix):
            sizes.setdefault(name.removeprefix(prefix), []).append(size)
    return sizes
