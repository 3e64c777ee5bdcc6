"""``egg:openstack-sluice#erasure_coding.fs``: the disk files of erasure-coded policies (see :mod:`mixins`).

A fragment archive is a stream of its own to us; its plain bytes are the fragments, which Swift checks as ever.
"""

from __future__ import annotations

from sluice_middleware.object_server.diskfile.decoded_file import DecodedReaderMixin
from sluice_middleware.object_server.diskfile.mixins import DiskFileMixin, ManagerMixin
from sluice_middleware.object_server.diskfile.streams import StreamReaderMixin
from sluice_middleware.object_server.diskfile.writer import PlainWriterMixin, WriterMixin
from sluice_middleware.swift import diskfile_api as swift


class PlainECWriter(PlainWriterMixin, swift.ECDiskFileWriter):  # type: ignore[misc]
    """Swift's, for what needs nothing of ours."""


class ECDiskFileWriter(WriterMixin, swift.ECDiskFileWriter):  # type: ignore[misc]
    """Swift's, under an intent."""


class DecodedECReader(DecodedReaderMixin, swift.ECDiskFileReader):  # type: ignore[misc]
    """Swift's, over a transformed file."""


class StreamECReader(StreamReaderMixin, swift.ECDiskFileReader):  # type: ignore[misc]
    """Swift's, over a file that a thread may read."""


class ECDiskFile(DiskFileMixin, swift.ECDiskFile):  # type: ignore[misc]
    """One fragment archive on one disk."""

    plain_writer_cls = PlainECWriter
    stream_writer_cls = ECDiskFileWriter
    decoded_reader_cls = DecodedECReader
    stream_reader_cls = StreamECReader


class ECDiskFileManager(ManagerMixin, swift.ECDiskFileManager):  # type: ignore[misc]
    """All fragment archives of one policy on a server's disks."""

    diskfile_cls = ECDiskFile
