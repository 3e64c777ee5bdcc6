"""``egg:openstack-sluice#replication.fs``: the disk files of replicated storage policies (see :mod:`mixins`)."""

from __future__ import annotations

from sluice_middleware.object_server.diskfile.commit import CommitMixin
from sluice_middleware.object_server.diskfile.decoded_file import DecodedReaderMixin
from sluice_middleware.object_server.diskfile.mixins import DiskFileMixin, ManagerMixin
from sluice_middleware.object_server.diskfile.streams import StreamReaderMixin
from sluice_middleware.object_server.diskfile.writer import PlainWriterMixin, WriterMixin
from sluice_middleware.swift import diskfile_api as swift


class PlainWriter(CommitMixin, PlainWriterMixin, swift.DiskFileWriter):  # type: ignore[misc]
    """Swift's writer, for objects that need no part of Sluice."""


class DiskFileWriter(CommitMixin, WriterMixin, swift.DiskFileWriter):  # type: ignore[misc]
    """Swift's writer, with a requested transform."""


class DecodedReader(DecodedReaderMixin, swift.DiskFileReader):  # type: ignore[misc]
    """Swift's reader, over a transformed file."""


class StreamReader(StreamReaderMixin, swift.DiskFileReader):  # type: ignore[misc]
    """Swift's reader, over a file that a thread may read."""


class DiskFile(DiskFileMixin, swift.DiskFile):  # type: ignore[misc]
    """One object on one disk."""

    plain_writer_cls = PlainWriter
    stream_writer_cls = DiskFileWriter
    decoded_reader_cls = DecodedReader
    stream_reader_cls = StreamReader


class DiskFileManager(ManagerMixin, swift.DiskFileManager):  # type: ignore[misc]
    """All objects of one policy on a server's disks."""

    diskfile_cls = DiskFile
