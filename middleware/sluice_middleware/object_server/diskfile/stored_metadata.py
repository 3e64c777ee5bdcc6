"""The private metadata entry of a transformed file: how its stored bytes are decoded.

The entry stands among Swift's own metadata of the ``.data`` file, under their checksum, so rsync and hard
links carry it with the bytes it describes.  It is removed when metadata are read and never leaves
the disk in any other way: each replica and fragment is encoded by itself and has its own.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Self

from sluice_core.errors import DecodeError
from sluice_filters.chain import plain_size

#: Title case, as the object server writes a header's name, so that an entry sent by a stock daemon is detected.
ENTRY: Final = "Sluice-Stored"
#: Version of the entries that disk files write; every version has ``v`` and ``size``.
VERSION: Final = 1


@dataclass(frozen=True, slots=True)
class StoredMetadata:
    """The file has ``size`` bytes, and ``records`` (``sluice_filters.chain``) say how to decode them.

    ``crc`` is the CRC-32 of those bytes: a format may have bits without meaning, and damage to one of those
    must be detected too.  Of an entry of a newer ``version`` only the size is known.
    """

    size: int
    crc: int
    records: tuple[Mapping[str, Any], ...]
    version: int = VERSION

    def encode(self) -> str:
        """The entry's value."""
        data = {"v": self.version, "size": self.size, "crc": self.crc, "chain": list(self.records)}
        return json.dumps(data, separators=(",", ":"), sort_keys=True)

    @classmethod
    def decode(cls, value: str) -> Self:
        """Decode ``value``.

        :raises DecodeError: for a value that no version writes
        """
        try:
            data = json.loads(value)
            version, size = data["v"], data["size"]
        except (ValueError, TypeError, KeyError, RecursionError) as error:
            raise DecodeError(f"entry `{ENTRY}` is damaged: {error!r}") from error
        if not _is_count(version) or not _is_count(size):
            raise DecodeError(f"entry `{ENTRY}` is damaged: `v` is `{version!r}`, `size` is `{size!r}`")
        if version > VERSION:
            return cls(size, 0, (), version)
        match data:
            case {"crc": int(crc), "chain": [_, *_] as chain} if all(isinstance(one, dict) for one in chain):
                return cls(size, crc, tuple(chain), version)
        raise DecodeError(
            f"entry `{ENTRY}` is damaged: `crc` is `{data.get('crc')!r}`, `chain` is `{data.get('chain')!r}`"
        )

    def plain_size(self) -> int | None:
        """Bytes of the plain file; None for a newer version.

        :raises CorruptData: when the records contradict themselves
        """
        return plain_size(self.records) if self.version <= VERSION else None

    def filters(self) -> tuple[str, ...]:
        """Keywords of the filters that were applied, in running order."""
        return tuple(str(one.get("f")) for one in self.records)


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value > 0
