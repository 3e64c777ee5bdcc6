"""What LevelDB holds: for each key an entry of metadata, and its bytes under another prefix unless they were given up.

Metadata are apart from bytes so that versions are compared, and a database is scanned, without reading values.  Both
are written in one batch, so whatever ends the process leaves an item whole or contracted.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, Self

import msgpack

from sluice_core.errors import CallerError, DecodeError

#: Prefixes of keys in LevelDB: metadata by key, bytes by key.
METADATA: Final = b"m"
VALUES: Final = b"v"
#: The key of the number below which all versions lie that were given out.
RESERVED_VERSIONS: Final = b"s"
_FORMAT: Final = 1


@dataclass(frozen=True, slots=True)
class Entry:
    """The metadata of one key.

    :param version: given out once, for one write of a client or one new content made by a motif
    :param size: bytes of the value, whether they are there or not
    :param digest: SHA-256 of the value in hexadecimal; kept of values with motifs, else empty
    :param state: given out for each write of a value with motifs, so that its metadata are never the same twice
    :param contracted: whether the bytes are gone
    :param record: the text of a ``Record``; empty when the value has no motif
    """

    version: int
    size: int
    digest: str = ""
    state: int = 0
    contracted: bool = False
    record: str = ""

    def encode(self) -> bytes:
        fields: list[Any] = [_FORMAT, self.version, self.size]
        if self.record:
            fields += [self.digest, self.state, self.contracted, self.record]
        packed: bytes = msgpack.packb(fields)
        return packed

    @classmethod
    def decode(cls, key: bytes, raw: bytes) -> Self:
        """
        :raises DecodeError: when it is no metadata that this version knows
        """
        try:
            fields = msgpack.unpackb(raw)
        except (ValueError, msgpack.UnpackException) as error:
            raise DecodeError(f"the metadata of key `{item_name(key)}` are damaged", raw) from error
        match fields:
            case [int(form), int(version), int(size)] if form == _FORMAT:
                return cls(version, size)
            case [int(form), int(version), int(size), str(digest), int(state), bool(contracted), str(record)] if (
                form == _FORMAT
            ):
                return cls(version, size, digest, state, contracted, record)
        raise DecodeError(f"the metadata of key `{item_name(key)}` are of another version, or damaged", raw)


def item_name(key: bytes) -> str:
    """What the runtime calls a key: its text, with bytes that are no UTF-8 as surrogates."""
    return key.decode("utf-8", "surrogateescape")


def item_key(name: str) -> bytes:
    """The key of an item.

    :raises CallerError: when the name is none of :func:`item_name`
    """
    try:
        return name.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError as error:
        raise CallerError(f"`{name!a}` is the name of no key") from error
