"""The record of an item: its motifs, and the versions of the sources from which its bytes were made.

All data that must survive are stored with the item itself, as a short JSON text (system metadata, an extended
attribute, a value under a prefix).  Data stored elsewhere are caches, and are rebuilt from the records.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Self

from sluice_core.describe import Scalar
from sluice_core.errors import CallerError, DecodeError

#: The longest record of an item: it is stored in metadata, of which ext4 holds about 4 KB a file.
LONGEST_TEXT: Final = 2048
#: The most motifs of one item.
MOST_MOTIFS: Final = 4
_VERSION: Final = 1


@dataclass(frozen=True, slots=True)
class Motif:
    """A template with parameters, attached to an item.

    :param template: its keyword
    :param identity: attached it; sources are read with the rights that this identity has when they are read
    :param versions: while it is being attached, the ETags of the sources from which the bytes were made, if given;
        not stored
    :param proven: whether it was shown to make the item's bytes, by size and digest
    """

    template: str
    params: Mapping[str, Scalar] = field(default_factory=dict)
    identity: str = ""
    versions: tuple[str, ...] = field(default=(), compare=False)
    proven: bool = field(default=False, compare=False)

    def as_json(self) -> dict[str, Any]:
        content: dict[str, Any] = {"t": self.template, "p": dict(self.params), "i": self.identity}
        return {**content, "x": 1} if self.proven else content

    @classmethod
    def from_json(cls, data: Any) -> Self:
        """
        :raises DecodeError: when the value is no motif
        """
        match data:
            case {"t": str(template), "p": dict(params), "i": str(identity)}:
                if all(isinstance(value, Scalar) for value in params.values()):
                    return cls(template, params, identity, proven=data.get("x") == 1)
        raise DecodeError(f"`{data!r:.80}` is no motif")

    def is_same(self, other: Motif) -> bool:
        """Whether both differ at most in parameters that one of them lacks, such as the name of a copy."""
        pairs, others = self.params.items(), other.params.items()
        return (self.template, self.identity) == (other.template, other.identity) and (
            pairs <= others or others <= pairs
        )


@dataclass(frozen=True, slots=True)
class Plain:
    """An item as clients see it, whether it has its bytes or not.

    :param version: changes whenever a client writes the item, or a motif makes new content of it (``Shim.replace``);
            contraction and expansion keep it
    :param size: plain bytes
    :param digest: of the plain bytes, in hexadecimal; ``algorithm`` names its kind
    """

    version: str
    size: int
    digest: str
    algorithm: str = "md5"


@dataclass(frozen=True, slots=True)
class Record:
    """An item's motifs and the versions of the sources from which its bytes were made.

    :param made_from: version by source; empty without recorded versions
    """

    motifs: tuple[Motif, ...] = ()
    made_from: Mapping[str, str] = field(default_factory=dict)

    def joined(self, other: Record) -> Record:
        """Return this record with the further motifs of ``other``, as far as there is room.

        Of a source in both, the version of this record is kept.
        """
        more = [one for one in other.motifs if not any(map(one.is_same, self.motifs))]
        joined = (*self.motifs, *more)[:MOST_MOTIFS]
        return Record(joined, {**other.made_from, **self.made_from}) if more else self

    def encode(self) -> str:
        """
        :raises CallerError: when the text is longer than an item can hold
        """
        content = {"v": _VERSION, "m": [one.as_json() for one in self.motifs], "f": dict(self.made_from)}
        text = json.dumps(content, separators=(",", ":"), sort_keys=True)
        if len(text) > LONGEST_TEXT:
            raise CallerError(f"the motifs of an item take {len(text)} bytes, expected at most {LONGEST_TEXT}")
        return text

    @classmethod
    def decode(cls, text: str) -> Self:
        """
        :raises DecodeError: for a text that this version does not know
        """
        try:
            content = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise DecodeError("the record of an item's motifs is no JSON", text.encode()) from error
        match content:
            case {"v": int(version), "m": list(motifs), "f": dict(made_from)} if version == _VERSION:
                if len(motifs) <= MOST_MOTIFS and all(isinstance(value, str) for value in made_from.values()):
                    return cls(tuple(map(Motif.from_json, motifs)), made_from)
        raise DecodeError("the record of an item's motifs is of another version, or damaged", text.encode())


@dataclass(frozen=True, slots=True)
class ItemView:
    """An item as a shim sees it.

    :param name: its name in the shim's storage
    :param plain: what clients see
    :param contracted: whether it has no bytes
    :param pinned: why it must not be contracted, whatever its motifs (a manifest, for example); empty without such a
        reason
    :param opaque: the state that the shim needs to replace exactly this version; only the shim reads it
    """

    name: str
    plain: Plain
    record: Record = field(default_factory=Record)
    contracted: bool = False
    pinned: str = ""
    opaque: Any = None
