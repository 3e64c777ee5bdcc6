"""The changes to a writer whose stream has a thread of its own (:mod:`stream_scheduler`).

Swift's writer itself does not change.  Its ``write``, MD5 included, is called in the thread for 1 MiB at a time while
the next MiB arrives.  The calls of Swift's ``put`` (attributes, fsync, link) are intercepted before they reach Swift's
threads and run in the stream's thread, so that they have the stream's I/O priority.  The rules are those of
:mod:`streams`.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, MutableMapping
from typing import Any, Final

from sluice_core.messages.bandwidth import PUT
from sluice_middleware.object_server.diskfile.streams import diskfile_flow
from sluice_middleware.object_server.io_threads import ThreadStep
from sluice_middleware.object_server.stream_scheduler import STEP, StreamScheduler, StreamThread
from sluice_middleware.swift.diskfile_api import BaseDiskFileWriter, drop_buffer_cache, fdatasync

#: Keeps Swift's writer from syncing by itself: the bytes since its last sync never reach this.
_NEVER: Final = 1 << 62


class StreamWriterMixin(BaseDiskFileWriter):  # type: ignore[misc]
    """For Swift's writers, replicated and erasure-coded; the disk file sets ``scheduler``."""

    scheduler: StreamScheduler | None = None

    _fd: Any
    _bytes_per_sync: int
    _last_sync: int
    _upload_size: int
    _thread: StreamThread | None = None
    _call: ThreadStep | None = None
    #: Up to this offset the file is written as plain Swift writes it.
    _plain = 0
    _waiting: list[bytes]
    _waiting_size = 0
    _sync_at = _NEVER
    _deferred: Callable[[], Any] | None = None

    def write(self, chunk: bytes) -> None:
        """Queue the next bytes; an error may be that of earlier bytes."""
        if self._thread is None and (self._upload_size < self._plain or not self._join()):
            super().write(chunk)
            return
        self._waiting.append(chunk)
        self._waiting_size += len(chunk)
        if self._waiting_size >= STEP:
            self._hand_over()

    def flush(self) -> None:
        """Wait until all bytes are in the file and counted."""
        if self._thread is not None:
            if self._waiting:
                self._hand_over()
            self._await_step()

    def chunks_finished(self) -> tuple[int, str]:
        """As Swift's writer does."""
        self.flush()
        found: tuple[int, str] = super().chunks_finished()
        return found

    def put(self, metadata: MutableMapping[str, str]) -> None:
        """As Swift's writer does."""
        self.flush()
        super().put(metadata)
        self._do_deferred()

    def commit(self, timestamp: Any) -> None:
        """As Swift's writer does."""
        super().commit(timestamp)
        self._do_deferred()

    def close(self) -> None:
        """As Swift's writer; the descriptor may stay open until the current step ends."""
        thread, self._thread = self._thread, None
        if thread is None:
            super().close()
            return
        last = functools.partial(os.close, self._fd) if self._fd and thread.busy else None
        if last is not None:
            self._fd = None
        super().close()
        thread.release(last)

    def _join(self) -> bool:
        streams = self.scheduler
        flow = diskfile_flow(self._diskfile, PUT) if streams is not None and streams.wants_threads() else None
        self._thread = None if streams is None or flow is None else streams.lend(flow)
        if self._thread is None:
            self._plain = self._upload_size + STEP
            return False
        self._waiting = []
        self._sync_at = self._bytes_per_sync
        self._bytes_per_sync = _NEVER
        return True

    def _hand_over(self) -> None:
        self._await_step()
        if self._thread is not None:
            pieces, self._waiting, self._waiting_size = self._waiting, [], 0
            self._call = self._thread.start(functools.partial(self._write_step, pieces))

    def _await_step(self) -> None:
        call, self._call = self._call, None
        if call is not None:
            call.wait()

    def _write_step(self, pieces: list[bytes]) -> None:
        super().write(b"".join(pieces))
        size = self._upload_size - self._last_sync
        if size >= self._sync_at:
            fdatasync(self._fd)
            drop_buffer_cache(self._fd, self._last_sync, size)
            self._last_sync = self._upload_size

    def _finalize_put(self, *args: Any, **kwargs: Any) -> None:
        self._defer(functools.partial(super()._finalize_put, *args, **kwargs))

    def _finalize_durable(self, *args: Any, **kwargs: Any) -> None:
        self._defer(functools.partial(super()._finalize_durable, *args, **kwargs))

    def _defer(self, function: Callable[[], Any]) -> None:
        """Called in one of Swift's threads: run the call here, or in the stream's thread."""
        if self._thread is None:
            function()
        else:
            self._deferred = function

    def _do_deferred(self) -> None:
        function, self._deferred = self._deferred, None
        if function is not None and self._thread is not None:
            self._call = self._thread.start(function)
            self._await_step()
