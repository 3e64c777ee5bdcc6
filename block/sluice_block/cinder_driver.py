"""A Cinder volume driver whose volumes are files that nbdkit exports: ``sluice_block.cinder_driver.NbdFileDriver``.

Cinder loads it in its own environment, so it imports only Cinder, oslo, the standard library and
``sluice_block.cinder_nbd``.

Cinder calls :meth:`~NbdFileDriver.remove_export` also when :meth:`~NbdFileDriver.initialize_connection` refused a
second consumer, so an export ends with its attachment (:meth:`~NbdFileDriver.terminate_connection`), or with the
deletion of its volume.
"""

from __future__ import annotations

import socket
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from cinder import coordination, exception, interface
from cinder.volume import driver, volume_utils
from oslo_log import log as logging

from sluice_block.cinder_nbd.cinder_api import consumer, is_attached, may_be_attached, pool_name, run, translated
from sluice_block.cinder_nbd.exports import SHARED, SINGLE, Export, Exports
from sluice_block.cinder_nbd.options import OPTIONS, port_range
from sluice_block.cinder_nbd.pools import GIB, Pool, VolumeFiles, parse_pools
from sluice_block.konnector.connector_properties import SINGLE_REQUESTS

LOG = logging.getLogger(__name__)

#: Exports of one volume are opened, paused and closed one at a time.
_LOCK: Final = "sluice-nbd-{volume.id}"


@interface.volumedriver
class NbdFileDriver(driver.VolumeDriver):
    """Sparse raw files, thin provisioned, one NBD export for each attachment."""

    VERSION = "1.0"
    CI_WIKI_NAME = "Sluice"

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.configuration.append_config_values(OPTIONS)
        self._pools: dict[str, Pool] = {}

    @staticmethod
    def get_driver_options() -> list[Any]:
        """The options of a back end's section."""
        return OPTIONS

    def do_setup(self, context: Any) -> None:
        """Read the options; no process is started.

        :raises InvalidConfigurationValue: naming the option
        """
        options = self.configuration
        folder = options.sluice_nbd_folder or ""
        if not Path(folder).is_absolute():
            raise exception.InvalidConfigurationValue(option="sluice_nbd_folder", value=folder)
        try:
            self._pools = parse_pools(options.sluice_nbd_pool, Path(folder), self._backend_name())
        except ValueError as error:
            raise exception.InvalidConfigurationValue(option="sluice_nbd_pool", value=str(error)) from error
        try:
            ports = port_range(options.sluice_nbd_ports)
        except ValueError as error:
            raise exception.InvalidConfigurationValue(option="sluice_nbd_ports", value=str(error)) from error
        self._exports = Exports(Path(options.sluice_nbd_export_folder), options.sluice_nbd_address, ports, run)

    def check_for_setup_error(self) -> None:
        """Make the folders, and end exports without an attachment, which a crash left."""
        try:
            for pool in self._pools.values():
                pool.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            self._exports.prepare()
            run(["nbdkit", "--version"])
            for volume_id in self._exports.known():
                if not may_be_attached(volume_id):
                    LOG.info("ending the export of volume %s, which is not attached", volume_id)
                    self._exports.close(volume_id)
        except (OSError, ValueError) as error:
            raise exception.VolumeBackendAPIException(data=str(error)) from error

    def create_volume(self, volume: Any) -> None:
        """An empty volume."""
        with translated(volume.name):
            self._files(volume).create(volume.name, volume.size * GIB)

    def create_volume_from_snapshot(self, volume: Any, snapshot: Any) -> None:
        """Copy the snapshot, extended to the volume's size."""
        source = self._files(snapshot.volume).path(snapshot.name)
        with translated(volume.name):
            self._files(volume).copy(source, volume.name, volume.size * GIB)

    @coordination.synchronized("sluice-nbd-{src_vref.id}")
    def create_cloned_volume(self, volume: Any, src_vref: Any) -> None:
        """Copy another volume as it is at one moment, also while that is attached."""
        source = self._files(src_vref).path(src_vref.name)
        with translated(volume.name), self._exports.paused(src_vref.id):
            self._files(volume).copy(source, volume.name, volume.size * GIB)

    @coordination.synchronized(_LOCK)
    def delete_volume(self, volume: Any) -> None:
        """Remove the volume, and any export of it."""
        with translated(volume.name):
            self._exports.close(volume.id)
            self._files(volume).delete(volume.name)

    def extend_volume(self, volume: Any, new_size: int) -> None:
        """Make it longer; later connections see the new size."""
        try:
            self._files(volume).extend(volume.name, new_size * GIB)
        except OSError as error:
            raise exception.ExtendVolumeError(reason=f"`{volume.name}`: {error}") from error

    @coordination.synchronized("sluice-nbd-{snapshot.volume_id}")
    def create_snapshot(self, snapshot: Any) -> None:
        """Copy the volume as it is at one moment, also while it is attached."""
        volume = snapshot.volume
        with translated(snapshot.name), self._exports.paused(volume.id):
            self._files(volume).copy(self._files(volume).path(volume.name), snapshot.name)

    def delete_snapshot(self, snapshot: Any) -> None:
        """Remove the copy."""
        with translated(snapshot.name):
            self._files(snapshot.volume).delete(snapshot.name)

    def retype(self, context: Any, volume: Any, new_type: Any, diff: Any, host: Mapping[str, Any]) -> bool:
        """Accept another type in the same pool, which changes nothing on the disk; another pool needs a migration."""
        return bool(pool_name(volume.host) == pool_name(host["host"]))

    def local_path(self, volume: Any) -> str:
        """The volume's file."""
        return str(self._files(volume).path(volume.name))

    def create_export(self, context: Any, volume: Any, connector: Any) -> None:
        """Do nothing: an export belongs to an attachment, see :meth:`initialize_connection`."""

    def remove_export(self, context: Any, volume: Any) -> None:
        """Do nothing, see the head of this file."""

    @coordination.synchronized(_LOCK)
    def ensure_export(self, context: Any, volume: Any) -> None:
        """Start the exports of attached volumes after a restart of cinder-volume, with their sockets and keys."""
        with translated(volume.name):
            self._exports.restore(volume.id)

    def validate_connector(self, connector: Mapping[str, Any]) -> None:
        """Check that a connector names its machine.

        :raises InvalidConnectorException: when it does not
        """
        if not connector.get("host"):
            raise exception.InvalidConnectorException(missing="host")

    @coordination.synchronized(_LOCK)
    def initialize_connection(self, volume: Any, connector: Mapping[str, Any]) -> dict[str, Any]:
        """Export the volume for one consumer; return the existing export while it runs.

        :raises VolumeBackendAPIException: when it is exported for another consumer, or nbdkit does not start
        """
        tls = self.configuration.sluice_nbd_transport == "tcp" or connector["host"] != socket.gethostname()
        readonly = connector.get("mode") == "ro"
        path = self._files(volume).path(volume.name)
        with translated(volume.name):
            if not is_attached(volume):
                # left by a request whose result Cinder did not record, so that Cinder will not end it
                known = self._exports.find(volume.id)
                if known is not None and known.consumer != consumer(connector):
                    self._exports.close(volume.id)
            threads = SINGLE if connector.get(SINGLE_REQUESTS) and not tls else SHARED
            export = self._exports.open(volume.id, volume.name, path, consumer(connector), readonly, tls, threads)
        return {"driver_volume_type": "nbd", "data": self._connection(export)}

    @coordination.synchronized(_LOCK)
    def terminate_connection(self, volume: Any, connector: Mapping[str, Any] | None, **kwargs: Any) -> None:
        """End the consumer's export and return when it has ended; without a connector, end any export."""
        export = self._exports.find(volume.id)
        if export is not None and connector and export.consumer != consumer(connector):
            LOG.warning("volume %s is not exported for the connector of `%s`", volume.id, connector.get("host"))
            return
        with translated(volume.name):
            self._exports.close(volume.id)

    def _connection(self, export: Export) -> dict[str, Any]:
        """Return the connection for the consumer; ``auth_password`` is a name that oslo masks in logs."""
        properties: dict[str, Any] = {
            "uri": self._exports.uri(export),
            "export": export.name,
            "volume_id": export.volume_id,
        }
        if export.port is not None:
            properties |= {"auth_method": "TLS-PSK", "auth_username": export.volume_id, "auth_password": export.key}
        return properties

    @coordination.synchronized("sluice-nbd-{volume_id}")
    def _restart(self, volume_id: str) -> None:
        if not self._exports.alive(volume_id) and self._exports.find(volume_id) is not None:
            LOG.warning("the export of volume %s has ended, it is started again", volume_id)
            try:
                self._exports.restore(volume_id)
            except OSError as error:
                LOG.error("the export of volume %s does not start: %s", volume_id, error)

    def _update_volume_stats(self) -> None:
        for volume_id in self._exports.known():
            if not self._exports.alive(volume_id):
                self._restart(volume_id)
        reserved = self.configuration.reserved_percentage
        ratio = volume_utils.get_max_over_subscription_ratio(
            self.configuration.max_over_subscription_ratio, supports_auto=True
        )
        pools = []
        for pool in self._pools.values():
            usage = pool.usage()
            measured = {
                "pool_name": pool.name,
                "total_capacity_gb": round(usage.total / GIB, 3),
                "free_capacity_gb": round(usage.free / GIB, 3),
                "provisioned_capacity_gb": round(usage.provisioned / GIB, 3),
                "reserved_percentage": reserved,
                "max_over_subscription_ratio": ratio,
                "thin_provisioning_support": True,
                "thick_provisioning_support": False,
                "QoS_support": True,
                "multiattach": False,
                "online_extend_support": True,
            }
            pools.append(measured | pool.reported_capabilities())
        self._stats = {
            "volume_backend_name": self._backend_name(),
            "vendor_name": "Sluice",
            "driver_version": self.VERSION,
            "storage_protocol": "nbd",
            "pools": pools,
        }

    def _backend_name(self) -> str:
        return str(self.configuration.safe_get("volume_backend_name") or type(self).__name__)

    def _files(self, volume: Any) -> VolumeFiles:
        name = pool_name(volume.host)
        try:
            return VolumeFiles(self._pools[name], run)
        except KeyError:
            known = ", ".join(self._pools)
            raise exception.VolumeBackendAPIException(data=f"no pool `{name}`, expected one of {known}") from None
