"""The driver's calls to Cinder, and Cinder's exceptions."""

from __future__ import annotations

import contextlib
import errno
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from cinder import context, exception, objects, utils
from cinder.volume import volume_utils
from oslo_concurrency import processutils

from sluice_block.cinder_nbd.exports import ExportInUse
from sluice_block.cinder_nbd.pools import PoolFull

#: The fields of os-brick's properties of a machine that identify a consumer.
_CONNECTOR_KEYS: Final = ("host", "ip", "initiator", "nqn")


def pool_name(host: str) -> str:
    """Return the pool of ``machine@back end#pool``."""
    return str(volume_utils.extract_host(host, "pool"))


def consumer(connector: Mapping[str, Any]) -> str:
    """Return what identifies the consumer; it is the same for each request of one attachment."""
    return json.dumps([str(connector.get(key) or "") for key in _CONNECTOR_KEYS])


def is_attached(volume: Any) -> bool:
    """Whether Cinder has recorded an attachment of the volume."""
    found = objects.VolumeAttachmentList.get_all_by_volume_id(context.get_admin_context(), volume.id)
    return any(one.connector or one.attach_status == "attached" for one in found)


def may_be_attached(volume_id: str) -> bool:
    """Whether the volume may be attached; False when Cinder has no attachment of it, or no such volume."""
    try:
        volume = objects.Volume.get_by_id(context.get_admin_context(), volume_id)
    except exception.VolumeNotFound:
        return False
    return bool(volume.status != "available")


def run(command: Sequence[str]) -> None:
    """Run a program to its end, without blocking Cinder's other threads.

    :raises OSError: with the program's output; the number is that of a full file system or EIO
    """
    try:
        utils.execute("env", "LC_ALL=C", *command)
    except processutils.ProcessExecutionError as error:
        said = (error.stderr or "").strip() or f"`{command[0]}` ended with {error.exit_code}"
        raise OSError(errno.ENOSPC if "No space left on device" in said else errno.EIO, said) from error


@contextlib.contextmanager
def translated(name: str) -> Iterator[None]:
    """Translate errors of the volume or snapshot ``name`` to Cinder's exceptions.

    :raises VolumeBackendAPIException: for exceptions of files and exports
    """
    try:
        yield
    except (OSError, PoolFull, ExportInUse) as error:
        raise exception.VolumeBackendAPIException(data=f"`{name}`: {error}") from error
