"""``egg:openstack-sluice#erasure_coding.fs``: the disk files of erasure-coded policies (see :mod:`mixins`).

Sluice treats a fragment archive as a stream of its own; its plain bytes are the fragments, which Swift checks as usual.
"""

from __future__ import annotations

from sluice_middleware.object_server.diskfile.decoded_file import DecodedReaderMixin
from sluice_middleware.object_server.diskfile.mixins import DiskFileMixin, ManagerMixin
from sluice_middleware.object_server.diskfile.streams import StreamReaderMixin
from sluice_middleware.object_server.diskfile.writer import PlainWriterMixin, WriterMixin
from sluice_middleware.swift import diskfile_api as swift


class PlainECWriter(PlainWriterMixin, swift.ECDiskFileWriter):  # type: ignore[misc]
    """Swift's writer, for objects that need no part of Sluice."""


class ECDiskFileWriter(WriterMixin, swift.ECDiskFileWriter):  # type: ignore[misc]
    """Swift's writer, with a requested transform."""


class DecodedECReader(DecodedReaderMixin, swift.ECDiskFileReader):  # type: ignore[misc]
    """Swift's reader, over a transformed file."""


class StreamECReader(StreamReaderMixin, swift.ECDiskFileReader):  # type: ignore[misc]
    """Swift's reader, over a file that a thread may read."""


class ECDiskFile(DiskFileMixin, swift.ECDiskFile):  # type: ignore[misc]
    """One fragment archive on one disk."""

    plain_writer_cls = PlainECWriter
    stream_writer_cls = ECDiskFileWriter
    decoded_reader_cls = DecodedECReader
    stream_reader_cls = StreamECReader


class ECDiskFileManager(ManagerMixin, swift.ECDiskFileManager):  # type: ignore[misc]
    """All fragment archives of one policy on a server's disks."""

    diskfile_cls = ECDiskFile
