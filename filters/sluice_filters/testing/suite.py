"""The common part of the contract suite: the tested filter, its samples, and ways to run it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, ClassVar

from sluice_core.describe import Scalar
from sluice_filters.api import CorruptData, Filter, Hint, Stream
from sluice_filters.chain import ChainEncoder, Records, chain_decoder, chain_reader
from sluice_filters.pipe import run

#: Stored bytes and their records.
Coded = tuple[bytes, tuple[dict[str, Any], ...]]


def damaged(data: bytes) -> Iterator[bytes]:
    """Yield ``data`` with one byte changed, at every position: one bit, then all of them."""
    for place in range(len(data)):
        for mask in (0x01, 0x80, 0xFF):
            yield data[:place] + bytes((data[place] ^ mask,)) + data[place + 1 :]


def encode(filters: Iterable[Filter], data: bytes, hint: Hint | None = None) -> Coded:
    """Return stored bytes and records of ``data`` through the encoders of ``filters``, after a round trip as JSON."""
    return encode_pieces(filters, [data], hint or Hint(len(data)))


def encode_pieces(filters: Iterable[Filter], pieces: Iterable[bytes], hint: Hint) -> Coded:
    """As :func:`encode`, for an object in ``pieces``."""
    chain = ChainEncoder(list(filters), hint)
    stored = run(chain, pieces)
    return stored, tuple(json.loads(json.dumps(chain.records())))


def outcome(stream: Stream, data: bytes) -> bytes | None:
    """Return the output, or None when the damage was detected; any other exception is a fault."""
    try:
        return run(stream, [data])
    except CorruptData:
        return None


class FilterSuite:
    """The tested filter, and its parameters; set by a subclass of :class:`~sluice_filters.testing.FilterContract`."""

    filter: ClassVar[type[Filter]]
    params: ClassVar[Mapping[str, Scalar]] = {}
    hint: ClassVar[Hint] = Hint()
    #: True when the stored bytes are protected by checksums.
    checked: ClassVar[bool] = True
    #: False when two encoders of the same bytes differ (a salt, a nonce).
    repeatable: ClassVar[bool] = True
    samples: ClassVar[tuple[bytes, ...]] = (b"", b"x", b"the quick brown fox " * 20, bytes(range(256)))

    def make(self) -> Filter:
        """Return a new instance, configured as by a policy."""
        return self.filter(self.params)

    def coded(self, data: bytes) -> Coded:
        """Stored bytes and records of ``data``."""
        return encode([self.make()], data, self.hint_of(data))

    def hint_of(self, data: bytes) -> Hint:
        """Return a host's hint for ``data``."""
        return replace(self.hint, size=len(data))

    def reader(self, hint: Hint) -> Stream:
        """The read-time transform, as a host runs it."""
        return chain_reader([self.make()], hint)

    def decoded(self, records: Records) -> Stream:
        """Return a decoder for ``records`` without the policy's parameters."""
        return chain_decoder(records, {self.filter.info.keyword: self.filter})

    def _cut_encoded(self, data: bytes, pieces: Iterable[bytes]) -> Coded:
        return encode_pieces([self.make()], pieces, self.hint_of(data))

    def _same(self, coded: Coded, other: Coded) -> bool:
        """Whether both are the same encoding, or equal except for random parts."""
        if self.repeatable:
            return coded == other
        plain = [run(self.decoded(records), [stored]) if records else stored for stored, records in (coded, other)]
        return len(coded[0]) == len(other[0]) and plain[0] == plain[1]

    def _transformed(self) -> Iterator[tuple[bytes, bytes, Records]]:
        """Yield the samples that were changed: plain bytes, stored bytes and records."""
        for data in self.samples:
            stored, records = self.coded(data)
            if records:
                yield data, stored, records
