"""Bodies whose pieces pass as the transfer of their flow has credit for them."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final, Protocol

from sluice_middleware.bandwidth.wait_queue import Transfer
from sluice_middleware.swift.proxy_api import close_if_possible
from sluice_middleware.wsgi.inputs import TransparentInput
from sluice_middleware.wsgi.response import WrappedBody

#: Bytes that pass at once, of a list or of a piece that waits for credit.
PIECE: Final = 64 * 1024
_NOTHING: Final = memoryview(b"")


class ThrottledBody(WrappedBody):
    """A body whose pieces pass when the transfer has credit for them.

    Large pieces pass in parts, so that their charges are spread evenly, and in small parts when many wait at a low
    rate.
    """

    __slots__ = ("_account", "_pay", "_rest", "_then", "_transfer")

    def __init__(self, body: Iterable[bytes], transfer: Transfer) -> None:
        super().__init__(body)
        self._transfer = transfer
        self._account = transfer.account
        self._pay = transfer.acquire_some
        #: The part of a piece that has no credit yet.
        self._rest: memoryview | None = None
        self._then: Callable[[], None] | None = None

    def passed(self) -> int:
        """Bytes passed on until now."""
        return self._transfer.moved

    def on_close(self, ended: Callable[[], None]) -> None:
        """Call ``ended`` when the body is closed."""
        self._then = ended

    def __next__(self) -> bytes:
        if self._rest is not None:
            return self._part(self._rest)
        piece = next(self._pieces)
        size = len(piece)
        if self._account.free:  # by far the most frequent
            self._transfer.moved += size
            return piece
        if size > PIECE:
            return self._part(memoryview(piece))
        paid = self._pay(size)
        if paid == size:
            return piece
        self._rest = memoryview(piece)[paid:]
        return piece[:paid]

    def _part(self, rest: memoryview) -> bytes:
        paid = self._pay(min(len(rest), PIECE))
        self._rest = rest[paid:] if paid < len(rest) else None
        return bytes(rest[:paid])

    def close(self) -> None:
        """End the transfer, whether the body was read to its end or not."""
        self._transfer.close()
        if self._then is not None:
            self._then()
        super().close()


class Rechunked:
    """The bytes of a list body in pieces of bounded size."""

    __slots__ = ("_body",)

    def __init__(self, body: Sequence[bytes]) -> None:
        self._body = body

    def __iter__(self) -> Iterator[bytes]:
        for piece in self._body:
            if len(piece) <= PIECE:
                yield piece
            else:
                yield from (piece[at : at + PIECE] for at in range(0, len(piece), PIECE))

    def close(self) -> None:
        """Close the body at the end of the request."""
        close_if_possible(self._body)


class UploadMetrics(Protocol):
    """The metric events of an upload while its body is read."""

    def upload_admitted(self) -> None:
        """Handle the first read by Swift, which has authorized the upload; may be called again."""

    def received(self, data: bytes) -> None:
        """Handle bytes that were read; empty at the end of the body."""


class UploadInput(TransparentInput):
    """``wsgi.input`` of an upload: bytes that were read wait for credit before they are counted and returned.

    Swift authorizes a request before it reads, so the first read opens the transfer, or counts the whole body when no
    objective limits it.  A read of bounded size returns fewer bytes when many transfers wait at a low rate, and the
    rest with the next reads.  It counts for bandwidth and for metrics: a second wrapper would add one call for each
    chunk of each upload.
    """

    __slots__ = ("_begun", "_metrics", "_open", "_over", "_rest", "_transfer")

    def __init__(
        self,
        source: Any,
        open_transfer: Callable[[], Transfer | None] | None = None,
        metrics: UploadMetrics | None = None,
    ) -> None:
        """
        :param open_transfer: called by the first read: opens the transfer of the upload; returns None when its bytes
            are counted already and pass without credit
        """
        super().__init__(source)
        self._open = open_transfer
        self._metrics = metrics
        self._transfer: Transfer | None = None
        self._begun = self._over = False
        #: The bytes read from the input that have no credit yet.
        self._rest = _NOTHING

    def read(self, *args: Any) -> bytes:
        """Read as from the wrapped input, or a part of that."""
        if not self._begun:
            self._begin()
        data: bytes
        transfer = self._transfer
        if transfer is None:
            data = self._source.read(*args)
        elif self._rest:
            data = self._paid(transfer, self._of_rest(args), args)
        else:
            data = self._source.read(*args)
            if data and transfer.account.free:  # by far the most frequent
                transfer.moved += len(data)
            else:
                self._rest = memoryview(data)
                data = self._paid(transfer, data, args)
        if self._metrics is not None:
            self._metrics.received(data)
        return data

    def readline(self, *args: Any) -> bytes:
        """Read a line as the wrapped input does."""
        if not self._begun:
            self._begin()
        data: bytes = self._line(*args) if self._rest else self._source.readline(*args)
        if self._transfer is not None:
            self._pay(self._transfer, data, args)
        if self._metrics is not None:
            self._metrics.received(data)
        return data

    def close(self) -> None:
        """End the transfer when the request is answered."""
        self._over = True
        if self._transfer is not None:
            self._transfer.close()
        elif self._open is None:
            close_if_possible(self._source)

    def _begin(self) -> None:
        if self._metrics is not None:
            self._metrics.upload_admitted()
        if self._open is not None and not self._over:
            self._transfer = self._open()
        self._begun = True

    def _of_rest(self, args: tuple[Any, ...]) -> bytes:
        """Return the data of a read while there is a rest: only bytes of the rest when the read is bounded."""
        if _is_bounded(args):
            return bytes(self._rest[: args[0]])
        more: bytes = self._source.read(*args)
        return bytes(self._rest) + more

    def _line(self, size: int | None = None) -> bytes:
        """Return the next line, which begins in the rest."""
        most = -1 if size is None else size
        client = io.BytesIO(self._rest).readline(most)
        self._rest = self._rest[len(client) :]
        if self._rest or client.endswith(b"\n") or len(client) == most:
            return client
        more: bytes = self._source.readline(*(() if most < 0 else (most - len(client),)))
        return client + more

    def _paid(self, transfer: Transfer, data: bytes, args: tuple[Any, ...]) -> bytes:
        """Return the part of ``data``, the start of the rest, that has credit; all of it for an unbounded read."""
        if data and _is_bounded(args):
            size = transfer.acquire_some(len(data))
            self._rest = self._rest[size:]
            return data[:size]
        if data:
            self._rest = _NOTHING
        self._pay(transfer, data, args)
        return data

    def _pay(self, transfer: Transfer, data: bytes, args: tuple[Any, ...]) -> None:
        """Wait for credit for all of ``data``; empty ``data``, the end of the body, ends the transfer."""
        if data:
            transfer.acquire(len(data))
        elif args[:1] != (0,):
            self.close()


def _is_bounded(args: tuple[Any, ...]) -> bool:
    """Whether the reader limits the number of bytes."""
    return bool(args) and args[0] is not None and args[0] >= 0
