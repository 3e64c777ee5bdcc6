"""The message by which agents tell each other of writes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Final, Self

from sluice_core.cache.write_marks import DIGEST_SIZE
from sluice_core.errors import DecodeError
from sluice_core.messages.base import Message

_STAMP_SIZE: Final = 8
_RECORD_SIZE: Final = DIGEST_SIZE + _STAMP_SIZE


@dataclass(frozen=True, slots=True)
class WriteNotice(Message):
    """Writes on one node, and in a heartbeat what its agent has received.

    ``life`` identifies a run of the agent, ``number`` counts its messages from 1.  ``records`` are pairs of digest and
    stamp, 24 bytes each.  ``missed``: the agent may have missed writes of its own node.  ``heard``, in a heartbeat,
    maps the life of each agent to the number of its last heartbeat and the seconds since.
    """

    node: str
    life: str
    number: int
    records: bytes = b""
    missed: bool = False
    heard: Mapping[str, tuple[int, float]] | None = None

    binary: ClassVar[bool] = True

    def __iter__(self) -> Iterator[tuple[bytes, int]]:
        """The records: digest and stamp."""
        for start in range(0, len(self.records), _RECORD_SIZE):
            end = start + DIGEST_SIZE
            yield self.records[start:end], int.from_bytes(self.records[end : end + _STAMP_SIZE], "little")

    @classmethod
    def from_data(cls, data: Mapping[str, Any]) -> Self:
        """As that of the base.

        :raises DecodeError: also for records that are cut short
        """
        heard = data.get("heard")
        pairs = None if heard is None else {life: (number, ago) for life, (number, ago) in heard.items()}
        records = data.get("records", b"")
        if len(records) % _RECORD_SIZE:
            raise DecodeError(f"`{len(records)}` bytes of records, expected a multiple of {_RECORD_SIZE}")
        return super(WriteNotice, cls).from_data({**data, "heard": pairs})


def encode_record(digest: bytes, stamp: int) -> bytes:
    """One of the ``records`` of a notice."""
    return digest + stamp.to_bytes(_STAMP_SIZE, "little")
