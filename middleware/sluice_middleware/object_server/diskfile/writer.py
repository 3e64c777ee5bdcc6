"""Writes a file under a requested transform: Swift counts and hashes plain bytes, the disk stores encoded ones.

Theory of operation.  The object server writes plain pieces; heavy filters get them in batches, each in a thread.
``chunks_finished`` is called after the last piece and returns values of the plain object.  ``put``
truncates the space that was reserved for the plain size, and writes the private entry with Swift's own metadata,
in the same rename.  When no filter of the chain applies (an empty object, one that does not shrink), stock Swift
would have written the same file.

A refusal is raised at ``put``, after the body.  As a 409 before the body, it would make the proxy
answer 202 for the whole request; as a 5xx it would count against the device.  Until then the bytes are dropped.
"""

from __future__ import annotations

import os
from collections.abc import Callable, MutableMapping
from typing import Any, Final, NoReturn

from isal import isal_zlib

from sluice_core.errors import SluiceError
from sluice_filters.chain import ChainEncoder
from sluice_middleware.object_server.diskfile.disk_filters import Refused
from sluice_middleware.object_server.diskfile.stored_metadata import ENTRY, StoredMetadata
from sluice_middleware.object_server.diskfile.stream_writer import StreamWriterMixin
from sluice_middleware.swift import green
from sluice_middleware.swift.diskfile_api import BaseDiskFileWriter

#: Bytes that are handed to a thread at once; a hand-over costs about 100 µs.
BATCH: Final = 256 * 1024

Metadata = MutableMapping[str, str]


class _NoHash:
    """Replaces the MD5 of Swift's writer, which would hash the encoded bytes."""

    def update(self, data: bytes) -> None:
        """Do nothing."""


def _refuse_stored() -> NoReturn:
    """Refuse metadata that describe the stored bytes of another node."""
    raise Refused("these are stored bytes of another node, whose daemons do not run disk files of Sluice")


class PlainWriterMixin(BaseDiskFileWriter):  # type: ignore[misc]
    """For Swift's writers where no filter applies and no thread is needed: a short object, or metadata."""

    def put(self, metadata: Metadata) -> None:
        """As Swift's writer does.

        :raises Refused: as :class:`WriterMixin` does
        """
        if ENTRY in metadata:
            _refuse_stored()
        super().put(metadata)


class WriterMixin(StreamWriterMixin):
    """For Swift's writers, replicated and erasure-coded; their ``_upload_size`` is the number of bytes in the file."""

    _encoder: ChainEncoder | None = None
    _refusal: str = ""
    _transforming = False

    def set_encoder(self, encoder: ChainEncoder | None, refusal: str = "") -> None:
        """Set the encoder, or the reason for a refusal; called before ``open``."""
        self._transforming = True
        self._encoder = encoder
        self._refusal = refusal
        self._plain_etag: Any = self._chunks_etag
        self._chunks_etag: Any = _NoHash()
        self._plain_size = self._crc = 0
        self._held = bytearray()
        self._pending: green.Pending | None = None
        self._passing = self._ended = False

    def open(self) -> Any:
        """As Swift's writer; without a file when it refuses."""
        return self if self._refusal else super().open()

    def close(self) -> None:
        """As Swift's writer does."""
        if self._transforming and self._pending is not None:
            self._pending.kill()
        super().close()

    def write(self, chunk: bytes) -> None:
        """Encode and write the next plain bytes."""
        if not self._transforming:
            super().write(chunk)
            return
        self._plain_size += len(chunk)
        self._plain_etag.update(chunk)
        if self._refusal or not chunk:
            return
        if self._encoder is None or self._passing:
            super().write(chunk)
        elif self._encoder.heavy:
            self._held += chunk
            if len(self._held) >= BATCH:
                self._encode_batch()
        else:
            self._encode(self._encoder.feed, chunk)

    def chunks_finished(self) -> tuple[int, str]:
        """Return size and MD5 of the plain bytes; all encoded bytes are written now."""
        if not self._transforming:
            found: tuple[int, str] = super().chunks_finished()
            return found
        self._end()
        return self._plain_size, self._plain_etag.hexdigest()

    def put(self, metadata: Metadata) -> None:
        """As Swift's writer, with the private entry.

        :raises Refused: the object was not stored
        """
        if ENTRY in metadata:
            _refuse_stored()
        if self._transforming:
            self._end()
        if self._refusal:
            raise Refused(self._refusal)
        records = self._encoder.records() if self._encoder is not None and self._plain_size else ()
        if not records:
            super().put(metadata)
            return
        self.flush()
        os.ftruncate(self._fd, self._upload_size)  # frees the blocks that were reserved for the plain size
        metadata[ENTRY] = StoredMetadata(self._upload_size, self._crc, records).encode()
        try:
            super().put(metadata)
        finally:
            del metadata[ENTRY]

    def _end(self) -> None:
        """End the body after all plain bytes; may be called again."""
        if self._ended:
            return
        self._ended = True
        self._await()
        if self._encoder is None or not self._plain_size or self._refusal:
            return
        if self._held:
            self._encode(self._encoder.feed, bytes(self._held))
        if not self._refusal:
            self._encode(self._encoder.finish)

    def _encode_batch(self) -> None:
        """Write the encoded bytes of the batch before, and hand this one to the thread."""
        self._await()
        encoder = self._encoder
        if encoder is None or self._refusal:
            return
        data, self._held = bytes(self._held), bytearray()
        if encoder.settled():
            self._passing = True
            super().write(data)
        else:
            self._pending = green.start_in_thread(encoder.feed, data)

    def _await(self) -> None:
        pending, self._pending = self._pending, None
        if pending is not None:
            self._encode(pending.wait)

    def _encode(self, function: Callable[..., bytes], *data: bytes) -> None:
        try:
            encoded = function(*data)
        except SluiceError as error:
            self._refusal = f"a filter failed: {error}"
            return
        self._crc = isal_zlib.crc32(encoded, self._crc)
        super().write(encoded)
