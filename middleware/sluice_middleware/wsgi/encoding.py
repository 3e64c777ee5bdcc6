"""A transformed PUT: the plain body becomes the stored one.

Theory of operation.  The client's length and ETag describe the plain body, so both are removed from the request: the
body is sent chunked, and length and MD5 of the plain bytes are checked here.  ``EncodedInput`` replaces
``wsgi.input``.  The proxy server reads from it after it has authorized the request and connected to the object
servers, so no byte is read before Swift requests it.  While one batch is encoded in a thread (codecs and MD5 release
the interpreter's lock), the next one is read from the client.  Values that are known only at the end are sent as
footers: the chain, the plain ETag, and the overrides that keep the container listing plain.  A footers callback of a
middleware to the left runs first.

When the filters do not change the bytes no metadata are written: the object is a plain one.  Some filters know that
after a first batch (``Filter.decides_within``).  If the length is known and Swift would accept the request, that
batch is read before Swift sees the request.  If the bytes will not change, Swift gets the request as it came, with
length and ETag; the price is one batch encoded in vain.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, MutableMapping, Sequence
from typing import Any, Final, Protocol

from sluice_core.errors import SluiceError
from sluice_middleware.swift import green
from sluice_middleware.swift.proxy_api import (
    ChunkReadError,
    HTTPException,
    HTTPRequestEntityTooLarge,
    HTTPUnprocessableEntity,
    Request,
    constraints,
    get_container_update_override_key,
    normalize_etag,
)
from sluice_middleware.wsgi import sysmeta
from sluice_middleware.wsgi.inputs import RewoundInput, WrappedInput, service_unavailable
from sluice_middleware.wsgi.response import Env

#: Bytes handed to a thread at once; one hand-over costs about 100 µs.
BATCH: Final = 256 * 1024
#: Bodies up to this size are encoded in the calling thread.
INLINE: Final = 64 * 1024
_CHUNK: Final = 64 * 1024
#: In the environment of a PUT: a function that is called with the footers before they are sent.
FOOTERS: Final = "swift.callback.update_footers"
_OVERRIDE_ETAG: Final = get_container_update_override_key("etag")
_OVERRIDE_SIZE: Final = get_container_update_override_key("size")

Footers = MutableMapping[str, str]


class Encoder(Protocol):
    """The transformation of a plain body into the stored one: a ``ChainEncoder``, or a class like it."""

    def feed(self, data: bytes) -> bytes:
        """As a stream does."""

    def finish(self) -> bytes:
        """As a stream does."""

    def settled(self) -> bool:
        """True once it is certain that the bytes pass unchanged."""

    def records(self) -> Sequence[Mapping[str, Any]]:
        """After ``finish``: the records that decode the bytes; empty when the stored bytes need no decoding."""


class EncodedInput(WrappedInput):
    """``wsgi.input`` that reads a plain body and gives the encoded one.

    ``expected`` is the client's Content-Length, or None.
    """

    def __init__(self, env: Env, encoder: Encoder, expected: int | None, heavy: bool) -> None:
        super().__init__(env["wsgi.input"])
        self._env = env
        self._encoder = encoder
        self._expected = expected
        self._threaded = heavy and (expected is None or expected > INLINE)
        self._md5 = hashlib.md5(usedforsecurity=False)
        self._pending: green.Pending | None = None
        self._ready = bytearray()
        #: All bytes of the client were read.
        self._ended = False
        #: The encoder has returned its last bytes.
        self._finished = False
        self._fault: Exception | None = None
        self.received = 0

    @property
    def etag(self) -> str:
        """MD5 of the plain bytes read so far."""
        return self._md5.hexdigest()

    @property
    def transparent(self) -> bool:
        """Whether Swift gets the plain bytes, so that its own ETag is the right one."""
        return self._encoder.settled()

    @property
    def complete(self) -> bool:
        """Whether the whole body was read and encoded, to the encoder's last bytes."""
        return self._finished

    def read(self, size: int = -1) -> bytes:
        """Return up to ``size`` encoded bytes (all of them when negative); empty at the end.

        :raises ChunkReadError: when the client sent fewer bytes than Content-Length
        :raises HTTPException: 413 for more bytes, 503 when a filter failed
        """
        if self._fault is not None:
            raise self._fault
        while not self.complete and (size < 0 or len(self._ready) < size):
            self._advance()
        if size < 0 or size >= len(self._ready):
            data, self._ready = bytes(self._ready), bytearray()
            return data
        data = bytes(memoryview(self._ready)[:size])
        del self._ready[:size]
        return data

    def records(self) -> Sequence[Mapping[str, Any]]:
        """The records that decode a complete body; empty when the stored bytes are the object itself."""
        return self._encoder.records() if self.complete and not self.transparent else ()

    def read_sample(self) -> bytes | None:
        """Read and encode a first batch; return it if all bytes will pass unchanged, else None.

        An error of the client's connection is kept for the next reader, as if it happened then.

        :raises SluiceError: when a filter failed
        """
        try:
            batch = self._collect()
        except (ChunkReadError, HTTPException, OSError, ValueError) as fault:
            self._fault = fault
            return None
        self._ready += green.run_in_thread(self._encoder.feed, batch) if self._threaded else self._encoder.feed(batch)
        if self.transparent:
            return batch
        self._md5.update(batch)
        return None

    def _advance(self) -> None:
        """Read one more batch while the previous one is encoded."""
        batch = b"" if self._ended else self._collect()
        try:
            if self._pending is not None:
                pending, self._pending = self._pending, None
                self._ready += pending.wait()
            if self._threaded and batch:
                self._pending = green.start_in_thread(self._encode, batch)
            elif batch:
                self._ready += self._encode(batch)
            if self._ended and self._pending is None:
                self._ready += self._encoder.finish()
                self._finished = True
        except SluiceError as error:
            self._fault = service_unavailable(self._env, error)
            raise self._fault from error

    def _encode(self, batch: bytes) -> bytes:
        if not self.transparent:  # else Swift computes the ETag
            self._md5.update(batch)
        return self._encoder.feed(batch)

    def _collect(self) -> bytes:
        """Return the next batch of the client's bytes; set ``_ended`` at the end of the body."""
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
        """Close at the end of the request; the result of a running encoding is dropped."""
        if self._pending is not None:
            self._pending.kill()
            self._pending = None


def prepare_upload(
    env: Env, encoder: Encoder, expected: int | None, heavy: bool, sampling: bool = False
) -> EncodedInput | None:
    """Turn the PUT in ``env`` into one of the encoded body.

    With ``sampling`` a first batch is encoded before any decision; if it shows that the bytes will not
    change, the request stays as it came and the result is None.

    :raises SluiceError: when a filter failed on the sample
    """
    source = env["wsgi.input"]
    body = EncodedInput(env, encoder, expected, heavy)
    plain = body.read_sample() if sampling else None
    if plain is not None:
        env["wsgi.input"] = RewoundInput(plain, source)
        return None
    client_etag = normalize_etag(env.pop("HTTP_ETAG", None))
    env["wsgi.input"] = body
    if _says_its_end(env):  # else Swift refuses the request, if it sees the client's headers
        env.pop("CONTENT_LENGTH", None)
        env["HTTP_TRANSFER_ENCODING"] = "chunked"
    env[FOOTERS] = _footers_callback(env, body, client_etag, env.get(FOOTERS))
    return body


def _says_its_end(env: Env) -> bool:
    """Whether Swift accepts the request's description of its length."""
    try:
        Request(env).message_length()
    except (ValueError, AttributeError):
        return False
    return "CONTENT_LENGTH" in env or env.get("HTTP_TRANSFER_ENCODING") == "chunked"


def _footers_callback(
    env: Env, body: EncodedInput, client_etag: str | None, earlier: Callable[[Footers], None] | None
) -> Callable[[Footers], None]:
    listing_etag_header = env.get("HTTP_" + _OVERRIDE_ETAG.upper().replace("-", "_"))

    def callback(footers: Footers) -> None:
        if earlier is not None:
            earlier(footers)
        if not body.complete or body.transparent:
            # no byte was encoded (or Swift did not read the body): the client's values apply
            if client_etag:
                footers.setdefault("Etag", client_etag)
            return
        announced = footers.pop("Etag", None) or client_etag
        if announced and normalize_etag(announced) != body.etag:
            raise HTTPUnprocessableEntity(request=Request(env))
        records = body.records()
        if not records:
            return  # the object server's own ETag is the right one for any output of the filters
        footers[sysmeta.CHAIN] = sysmeta.encode_chain(records)
        footers[sysmeta.ETAG] = body.etag
        footers.setdefault(_OVERRIDE_SIZE, str(body.received))
        if _OVERRIDE_ETAG not in footers:
            footers[_OVERRIDE_ETAG] = listing_etag_header or body.etag

    return callback


def plain_response_headers(headers: sysmeta.Headers, body: EncodedInput) -> sysmeta.Headers:
    """Headers of the PUT's response with the ETag of the plain object."""
    if not body.records():
        return headers
    return [(name, body.etag if name.lower() == "etag" else value) for name, value in headers]
