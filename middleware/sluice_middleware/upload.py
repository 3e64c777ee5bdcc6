"""A transformed PUT: how the plain body becomes the stored one, and who is told what.

Theory of operation.  The client's length and ETag do not hold for what will be stored, so both are
taken off the request: the body goes on chunked, the plain length and MD5 are checked here.
``EncodedInput`` stands in for ``wsgi.input``; the proxy server reads from it after it authorized the
request and connected to the object servers, so nothing is read before Swift wants it.  While one
piece is encoded in a thread (codecs and MD5 release the interpreter's lock) the next one is read
from the client.  What is known only at the end travels as footers: chain and plain ETag, and the
overrides that keep the container listing plain.  An earlier footers callback runs first.

When the chain lets the bytes through unchanged nothing is written: the object is a plain one.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, MutableMapping
from typing import Any, Final

from sluice_core.errors import SluiceError
from sluice_filters.chain import ChainEncoder
from sluice_middleware import green, metadata
from sluice_middleware.swift_door import (
    ChunkReadError,
    HTTPRequestEntityTooLarge,
    HTTPServiceUnavailable,
    HTTPUnprocessableEntity,
    Request,
    constraints,
    get_container_update_override_key,
    normalize_etag,
)

#: Bytes handed to a thread at once; one hand-over costs about 100 µs.
BATCH: Final = 256 * 1024
#: Bodies up to this size are encoded on the spot.
INLINE: Final = 64 * 1024
_CHUNK: Final = 64 * 1024
_FOOTERS: Final = "swift.callback.update_footers"
_OVERRIDE_ETAG: Final = get_container_update_override_key("etag")
_OVERRIDE_SIZE: Final = get_container_update_override_key("size")

Env = dict[str, Any]
Footers = MutableMapping[str, str]


class PassingInput:
    """``wsgi.input`` for a chain that changes no content: filters see the bytes, Swift gets them."""

    def __init__(self, source: Any, encoder: ChainEncoder) -> None:
        self._source = source
        self._encoder = encoder
        self._ended = False

    def read(self, size: int = -1) -> bytes:
        """What the filters passed on of the next ``size`` bytes (at most) of the body."""
        while not self._ended:
            data: bytes = self._source.read(size)
            if data:
                data = self._encoder.feed(data)
            else:
                self._ended = True
                data = self._encoder.finish()
            if data:
                return data
        return b""


class EncodedInput:
    """``wsgi.input`` that reads a plain body and gives the encoded one.

    ``expected`` is the Content-Length that the client announced, or None.
    """

    def __init__(self, env: Env, encoder: ChainEncoder, expected: int | None, heavy: bool) -> None:
        self._env = env
        self._source = env["wsgi.input"]
        self._encoder = encoder
        self._expected = expected
        self._threaded = heavy and (expected is None or expected > INLINE)
        self._md5 = hashlib.md5(usedforsecurity=False)
        self._pending: green.Pending | None = None
        self._ready = bytearray()
        self._ended = False
        self.received = 0

    @property
    def etag(self) -> str:
        """MD5 of the plain bytes read so far."""
        return self._md5.hexdigest()

    @property
    def transparent(self) -> bool:
        """True when Swift gets the plain bytes, so that its own ETag is the right one."""
        return self._encoder.settled()

    @property
    def complete(self) -> bool:
        """True when the whole body was read and encoded."""
        return self._ended and self._pending is None

    def read(self, size: int = -1) -> bytes:
        """Up to ``size`` encoded bytes (all of them when negative); empty at the end.

        :raises ChunkReadError: when the client sent less than it announced
        :raises HTTPException: 413 for too much, 503 when a filter failed
        """
        while not self.complete and (size < 0 or len(self._ready) < size):
            self._advance()
        if size < 0 or size >= len(self._ready):
            data, self._ready = bytes(self._ready), bytearray()
            return data
        data = bytes(memoryview(self._ready)[:size])
        del self._ready[:size]
        return data

    def _advance(self) -> None:
        """Read one more batch while the one before is being encoded."""
        batch = b"" if self._ended else self._collect()
        try:
            if self._pending is not None:
                pending, self._pending = self._pending, None
                self._ready += pending.wait()
            if self._threaded and batch:
                self._pending = green.start(self._encode, batch)
            elif batch:
                self._ready += self._encode(batch)
            if self._ended and self._pending is None:
                self._ready += self._encoder.finish()
        except SluiceError as error:
            raise HTTPServiceUnavailable(
                request=Request(self._env), body=f"sluice: {error}\n", content_type="text/plain"
            ) from error

    def _encode(self, batch: bytes) -> bytes:
        if not self.transparent:  # else Swift's own ETag will do
            self._md5.update(batch)
        return self._encoder.feed(batch)

    def _collect(self) -> bytes:
        """The next batch of the client's bytes; sets ``_ended`` at the end of the body."""
        pieces = []
        gathered = 0
        while gathered < BATCH:
            piece = self._source.read(_CHUNK)
            if not piece:
                self._ended = True
                break
            pieces.append(piece)
            gathered += len(piece)
            if self._expected is not None and self.received + gathered >= self._expected:
                self._ended = True
                break
        self.received += gathered
        if self.received > constraints.MAX_FILE_SIZE:
            raise HTTPRequestEntityTooLarge(request=Request(self._env))
        if self._ended and self._expected is not None and self.received < self._expected:
            raise ChunkReadError(f"client sent {self.received} of {self._expected} bytes")
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def close(self) -> None:
        """The request is over; an encoding under way is of no use any more."""
        if self._pending is not None:
            self._pending.kill()
            self._pending = None


def prepare(env: Env, encoder: ChainEncoder, expected: int | None, heavy: bool) -> EncodedInput:
    """Turn the PUT in ``env`` into one of the encoded body."""
    body = EncodedInput(env, encoder, expected, heavy)
    client_etag = normalize_etag(env.pop("HTTP_ETAG", None))
    env["wsgi.input"] = body
    env.pop("CONTENT_LENGTH", None)
    env["HTTP_TRANSFER_ENCODING"] = "chunked"
    env[_FOOTERS] = _footers_callback(env, body, encoder, client_etag, env.get(_FOOTERS))
    return body


def _footers_callback(
    env: Env,
    body: EncodedInput,
    encoder: ChainEncoder,
    client_etag: str | None,
    earlier: Callable[[Footers], None] | None,
) -> Callable[[Footers], None]:
    listing_etag_header = env.get("HTTP_" + _OVERRIDE_ETAG.upper().replace("-", "_"))

    def callback(footers: Footers) -> None:
        if earlier is not None:
            earlier(footers)
        if not body.complete or body.transparent:
            # nothing was encoded (or Swift did not read the body): the client's word stands
            if client_etag:
                footers.setdefault("Etag", client_etag)
            return
        announced = footers.get("Etag") or client_etag
        if announced and normalize_etag(announced) != body.etag:
            raise HTTPUnprocessableEntity(request=Request(env))
        records = encoder.records()
        if not records:
            return
        footers.pop("Etag", None)  # the object server computes that of the stored bytes
        footers[metadata.CHAIN] = metadata.encode_chain(records)
        footers[metadata.ETAG] = body.etag
        footers.setdefault(_OVERRIDE_SIZE, str(body.received))
        if _OVERRIDE_ETAG not in footers:
            footers[_OVERRIDE_ETAG] = listing_etag_header or body.etag

    return callback


def plain_answer(headers: metadata.Headers, body: EncodedInput) -> metadata.Headers:
    """Headers of the PUT's answer with the ETag of what the client sent."""
    if not body.complete or body.transparent:
        return headers
    return [(name, body.etag if name.lower() == "etag" else value) for name, value in headers]
