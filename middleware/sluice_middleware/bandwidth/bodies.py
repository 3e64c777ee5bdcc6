"""Bodies whose pieces pass as the transfer of their flow has credit for them."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final

from sluice_middleware.bandwidth.wait_queue import Transfer
from sluice_middleware.swift.proxy_api import close_if_possible
from sluice_middleware.wsgi.response import WrappedBody

#: Bytes that pass at once, of a list or of a piece that waits for credit.
PIECE: Final = 64 * 1024
_NOTHING: Final = memoryview(b"")


class ThrottledBody(WrappedBody):
    """A body whose pieces pass when the transfer got credit for them.

    Large pieces pass in parts, so that what they cost is spread evenly, and small ones when many wait for a low rate.
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
        """The request is over."""
        close_if_possible(self._body)


class ThrottledInput:
    """``wsgi.input`` of an upload: bytes that were read wait for credit before they are returned.

    Swift authorizes a request before it reads, so the first read opens the transfer, or counts the whole body when
    nothing holds it back.  A read of bounded size returns
    fewer bytes when many transfers wait for a low rate, and the rest with the next reads.
    """

    __slots__ = ("_counted", "_open", "_over", "_rest", "_source", "_transfer")

    def __init__(self, source: Any, open_transfer: Callable[[], Transfer | None]) -> None:
        """
        :param open_transfer: called by the first read: opens the transfer of the upload; None when its bytes are
            counted already and pass
        """
        self._source = source
        self._open = open_transfer
        self._transfer: Transfer | None = None
        self._over = self._counted = False
        #: The part of what was read that has no credit yet.
        self._rest = _NOTHING

    def read(self, *args: Any) -> bytes:
        """As the wrapped input, or a part of that."""
        data: bytes
        transfer = self._transfer
        if transfer is None and not self._counted:
            transfer = self._begun()
        if self._counted:
            data = self._source.read(*args)
            return data
        if not self._rest:
            data = self._source.read(*args)
            if data and transfer is not None and transfer.account.free:  # by far the most frequent
                transfer.moved += len(data)
                return data
            self._rest = memoryview(data)
        elif _is_bounded(args):
            data = bytes(self._rest[: args[0]])
        else:
            data = bytes(self._rest) + self._source.read(*args)
        if not _is_bounded(args):
            self._rest = _NOTHING
            self._paid(transfer, data, args)
            return data
        paid = self._paid_some(transfer, data, args)
        self._rest = self._rest[paid:]
        return data[:paid]

    def readline(self, *args: Any) -> bytes:
        """As the wrapped input."""
        transfer = self._begun()
        data: bytes = self._line(*args) if self._rest else self._source.readline(*args)
        self._paid(transfer, data, args)
        return data

    def close(self) -> None:
        """End the transfer: the request was answered."""
        self._over = True
        if self._transfer is not None:
            self._transfer.close()

    def _begun(self) -> Transfer | None:
        if self._transfer is None and not (self._over or self._counted):
            self._transfer = self._open()
            self._counted = self._transfer is None
        return self._transfer

    def _line(self, size: int | None = None) -> bytes:
        """The next line, which begins in the rest."""
        most = -1 if size is None else size
        client = io.BytesIO(self._rest).readline(most)
        self._rest = self._rest[len(client) :]
        if self._rest or client.endswith(b"\n") or len(client) == most:
            return client
        more: bytes = self._source.readline(*(() if most < 0 else (most - len(client),)))
        return client + more

    def _paid(self, transfer: Transfer | None, data: bytes, args: tuple[Any, ...]) -> None:
        if data and transfer is not None:
            transfer.acquire(len(data))
        elif not data and args[:1] != (0,):
            self.close()

    def _paid_some(self, transfer: Transfer | None, data: bytes, args: tuple[Any, ...]) -> int:
        if data and transfer is not None:
            return transfer.acquire_some(len(data))
        self._paid(None, data, args)
        return len(data)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._source, name)


def _is_bounded(args: tuple[Any, ...]) -> bool:
    """Whether who reads says how many bytes it wants at most."""
    return bool(args) and args[0] is not None and args[0] >= 0
