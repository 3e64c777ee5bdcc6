"""The additions to Swift's disk files and their managers, for every kind of storage policy.

Theory of operation.  Everything above the disk file (object server, SSYNC, auditor, reconstructor) works on the plain
object: its size, its ETag, its bytes.  Four places differ: the writer, the reader, the reading of metadata, which
removes the private entry (:mod:`stored_metadata`), and the check of the file's real size.

Rules:

* Nothing in ``open`` may raise an ``OSError``: Swift would swallow it and answer 200.
* A file that cannot be decoded because a key or a filter is missing can still be opened.  HEAD, POST and DELETE need
  no key.  A GET is refused (:class:`~sluice_middleware.object_server.diskfile.disk_filters.Unreadable`); the auditor
  skips the file and logs it.
* SSYNC's sender gets such files last.  It sends everything else first; then its session ends with an error, so
  that a handoff partition is not deleted while it holds files that no other node has.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import Any, Final

from sluice_core.errors import SluiceError
from sluice_core.messages.bandwidth import GET
from sluice_filters.api import CorruptData, Hint
from sluice_middleware.bandwidth.client_registry import AgentStateReader
from sluice_middleware.log import Logger
from sluice_middleware.object_server.diskfile import request_context
from sluice_middleware.object_server.diskfile.decoded_file import DecodedFile, OpaqueReader
from sluice_middleware.object_server.diskfile.disk_filters import DiskFilters, Refused, Unreadable
from sluice_middleware.object_server.diskfile.registration import OBJECT_SERVER, daemon_role, register
from sluice_middleware.object_server.diskfile.stored_metadata import ENTRY, StoredMetadata
from sluice_middleware.object_server.diskfile.streams import DecodedStreamFile, StreamFile, diskfile_flow
from sluice_middleware.object_server.stream_scheduler import STEP, StreamScheduler, log_devices
from sluice_middleware.swift.diskfile_api import (
    BaseDiskFile,
    BaseDiskFileManager,
    DiskFileError,
    get_part_path,
    read_metadata,
)

_DATA: Final = ".data"


class DiskFileMixin(BaseDiskFile):  # type: ignore[misc]
    """For Swift's disk files; ``decoded_reader_cls`` and ``stream_reader_cls`` are their readers with these mixins."""

    _fp: Any
    #: Whether streams may get threads: those of clients, and of copies between nodes that are requests.
    of_request = True
    #: Whether the auditor opened it, which skips files that cannot be decoded here.
    audited = False

    _stored: StoredMetadata | None = None

    def reader(self, *args: Any, **kwargs: Any) -> Any:
        """As Swift's disk file: a reader of plain bytes.

        :raises Unreadable: when they cannot be decoded here
        """
        streams = self._manager.streams if self.of_request else None
        if self._stored is None:
            short = int(self._metadata["Content-Length"]) <= STEP  # one step reads it all
            if streams is not None and (
                streams.always or streams.agent_state().active or not (short or self._use_splice)
            ):
                flow = diskfile_flow(self, GET)
                if flow is not None:
                    self._fp = StreamFile(self._fp, int(self._metadata["Content-Length"]), streams, flow)
                    self.reader_cls = self.stream_reader_cls
            return super().reader(*args, **kwargs)
        filters, hint = self._manager.disk_filters, self._hint(None, None)
        fault = filters.unreadable_reason(self._stored)
        if fault:
            self._fp.close()
            self._fp = None
            if not self.audited:
                raise Unreadable(fault)
            self._manager.report_skipped(self._data_file, fault)
            return OpaqueReader(())
        size = int(self._metadata["Content-Length"])
        plain: Any = DecodedFile(self._fp, self._stored, size, filters, hint)
        flow = diskfile_flow(self, GET) if streams is not None else None
        if streams is not None and flow is not None:
            plain = DecodedStreamFile(plain, size, streams, flow)
        self._fp, self.reader_cls = plain, self.decoded_reader_cls
        return OpaqueReader(super().reader(*args, **kwargs))

    def _writer(self, size: int | None, extension: str) -> Any:
        streams = self._manager.streams if extension == _DATA and self.of_request else None
        transform = request_context.current_request().transform if extension == _DATA else None
        short = size is not None and size <= STEP
        if transform is None and (
            streams is None or (short and not streams.always and not streams.agent_state().active)
        ):
            self.writer_cls = self.plain_writer_cls
            return super()._writer(size, extension)
        self.writer_cls = self.stream_writer_cls
        writer: Any = super()._writer(size, extension)
        writer.scheduler = streams
        if transform is not None:
            try:
                hint = self._hint(size, transform.content_type)
                self._manager.check_ready()
                writer.set_encoder(self._manager.disk_filters.encoder(transform, hint))
            except Refused as refusal:
                writer.set_encoder(None, str(refusal))
        return writer

    def _hint(self, size: int | None, content_type: str | None) -> Hint:
        return Hint(size=size, content_type=content_type, name=self.obj or "", account=self.account or "")

    def _decode_entry(self, data_file: str, value: str) -> StoredMetadata:
        try:
            stored = StoredMetadata.decode(value)
            self._check_plain_size(stored, self._datafile_metadata)
        except SluiceError as error:
            raise self._quarantine(data_file, str(error)) from error
        return stored

    @staticmethod
    def _check_plain_size(stored: StoredMetadata, metadata: Mapping[str, Any]) -> None:
        size = stored.plain_size()
        if size is not None and str(size) != str(metadata.get("Content-Length")):
            raise CorruptData(f"metadata content-length {metadata.get('Content-Length')}, `{size}` by entry `{ENTRY}`")

    def _verify_data_file(self, data_file: str, fp: Any, current_time: float | None) -> int:
        """As Swift's disk file, which compares the size in the metadata with the file's; removes Sluice's entry."""
        self._metadata.pop(ENTRY, None)
        value = self._datafile_metadata.pop(ENTRY, None)
        plain = self._metadata.get("Content-Length")
        self._stored = None if value is None else self._decode_entry(data_file, value)
        if self._stored is None or plain is None:
            size: int = super()._verify_data_file(data_file, fp, current_time)
            return size
        self._metadata["Content-Length"] = str(self._stored.size)
        try:
            super()._verify_data_file(data_file, fp, current_time)
        finally:
            self._metadata["Content-Length"] = plain
        try:
            self._content_length = int(plain)
        except ValueError as error:
            raise self._quarantine(data_file, f"bad metadata content-length value {plain}") from error
        return self._content_length


class ManagerMixin(BaseDiskFileManager):  # type: ignore[misc]
    """For Swift's managers."""

    def __init__(self, conf: Mapping[str, Any], logger: Logger) -> None:
        """
        :raises OptionError: when Sluice's options in ``conf`` cannot be used
        """
        super().__init__(conf, logger)
        self.disk_filters = DiskFilters(conf, logger)
        self._node = register(self.disk_filters, logger)
        self._skipped: dict[str, int] = {}
        state = AgentStateReader(self.disk_filters.options["sluice_agent_socket"])
        self.scheduler = StreamScheduler(self.disk_filters.options, state, logger)
        #: Lends threads to streams; None when no stream gets one.
        self.streams = None if self.scheduler.disabled else self.scheduler
        if self.streams is not None and daemon_role(logger) == OBJECT_SERVER:
            log_devices(self.devices, logger)

    def get_diskfile_and_filenames_from_hash(self, *args: Any, **kwargs: Any) -> tuple[Any, Any]:
        """A disk file for a daemon that copies, whose streams get no threads."""
        found, names = super().get_diskfile_and_filenames_from_hash(*args, **kwargs)
        found.of_request = False
        return found, names

    def get_diskfile_from_audit_location(self, audit_location: Any) -> Any:
        """A disk file for the auditor."""
        found = super().get_diskfile_from_audit_location(audit_location)
        found.of_request, found.audited = False, True
        return found

    def yield_hashes(
        self, device: str, partition: Any, policy: Any, suffixes: Any = None, **kwargs: Any
    ) -> Iterator[tuple[str, Any]]:
        """As Swift's manager, with files that cannot be decoded here at the end."""
        last = []
        for suffix_hashes in super().yield_hashes(device, partition, policy, suffixes, **kwargs):
            if self._is_readable(device, partition, policy, suffix_hashes[0]):
                yield suffix_hashes
            else:
                last.append(suffix_hashes)
        yield from last

    def check_ready(self) -> None:
        """
        :raises Refused: until all daemons of this node are known to run Sluice's disk files
        """
        waiting = self._node.reason_not_ready()
        if waiting:
            raise Refused(waiting)

    def report_skipped(self, path: str, reason: str) -> None:
        """Report that a file was not audited, for the 1st, 10th, 100th … of each reason."""
        count = self._skipped[reason] = self._skipped.get(reason, 0) + 1
        self.logger.increment("sluice.not_audited")
        if str(count).strip("0") == "1":
            self.logger.warning("sluice: %d files not audited until now, %s (the last: %s)", count, reason, path)

    def _is_readable(self, device: str, partition: Any, policy: Any, object_hash: str) -> bool:
        part = get_part_path(self.get_dev_path(device), policy, partition)
        folder = os.path.join(part, object_hash[-3:], object_hash)
        return all(self._can_read(os.path.join(folder, name)) for name in self._listdir(folder) if name.endswith(_DATA))

    def _can_read(self, path: str) -> bool:
        try:
            found = read_metadata(path)
            return ENTRY not in found or not self.disk_filters.unreadable_reason(StoredMetadata.decode(found[ENTRY]))
        except (DiskFileError, SluiceError, OSError, EOFError):
            return True  # opening the file reports the error
