"""Text in which every delimiter and every line end separates fields or records.

Quoted sections are found by splitting at the quotes: with doubled quotes as in RFC 4180, the parts are alternately
outside and inside.  Delimiters and line ends inside are replaced by bytes that do not occur in the text, one for one,
so that offsets stay and ``restore`` returns the original.  Text with quotes at other positions (a quote in the middle
of a field, characters behind a closing quote) is refused: the plain engine processes it.
"""

from __future__ import annotations

import functools
import itertools
import re
from dataclasses import dataclass, field
from typing import Final

from sluice_filters.csv.dialect import Dialect

#: Rare in text; the last ones never occur in UTF-8.
_CANDIDATES: Final = bytes((*range(1, 9), *range(14, 32), 127, 0xC0, 0xC1, *range(0xF5, 0x100)))
_NEEDED: Final = 4


@dataclass(frozen=True, slots=True)
class Masked:
    """``text`` with stand-ins; ``table`` restores them, and ``pairs`` are (stand-in, original)."""

    text: bytes
    table: bytes = b""
    pairs: tuple[tuple[bytes, bytes], ...] = ()
    #: A stand-in for CR where it is data.
    lone: bytes = field(default=b"")

    def restore(self, text: bytes) -> bytes:
        """Return the original of ``text``."""
        return text.translate(self.table) if self.table else text


def mask(dialect: Dialect, text: bytes) -> Masked | None:
    """Return ``text``, which begins with a record and may end anywhere, masked; None when it is irregular."""
    quoted = bool(dialect.quote) and dialect.quote in text
    if not quoted and b"\r" not in text:
        return Masked(text)
    free = _free(dialect, text)
    if free is None:
        return None
    joiner, *stand_ins = (free[place : place + 1] for place in range(_NEEDED))
    originals = (dialect.delimiter, b"\n", b"\r")
    if quoted:
        table = bytes.maketrans(b"".join(originals), b"".join(stand_ins))
        done = _mask_quoted(dialect, text, joiner, table)
        if done is None:
            return None
        text = done
    back = bytes.maketrans(b"".join(stand_ins), b"".join(originals))
    return Masked(text, back, tuple(zip(stand_ins, originals, strict=True)), stand_ins[2])


def _mask_quoted(dialect: Dialect, text: bytes, joiner: bytes, table: bytes) -> bytes | None:
    parts = text.split(dialect.quote)
    outside = joiner.join(parts[0::2])
    if _irregular(dialect.delimiter, joiner).search(outside) is not None:
        return None
    inside = joiner.join(parts[1::2])
    if not dialect.multiline and (b"\n" in inside or len(parts) % 2 == 0):
        return None
    masked = inside.translate(table)
    if masked == inside:
        return text
    parts[1::2] = masked.split(joiner)
    return dialect.quote.join(parts)


@functools.lru_cache(maxsize=64)
def _irregular(delimiter: bytes, joiner: bytes) -> re.Pattern[bytes]:
    """Return a pattern for a quote (``joiner``) that opens or closes elsewhere than at a field's ends."""
    mark, edge = re.escape(joiner), re.escape(delimiter)
    opened = rb"(?<=[^" + edge + mark + rb"\n]" + mark + rb")"
    closed = rb"(?![" + edge + mark + rb"\n]|\r\n|\r?\Z)"
    return re.compile(mark + rb"(?:" + opened + rb"|" + closed + rb")", re.DOTALL)


def _free(dialect: Dialect, text: bytes) -> bytes | None:
    """Return four bytes that do not occur in the text."""
    taken = dialect.delimiter + dialect.quote
    free = (one for one in _CANDIDATES if one not in text and one not in taken)
    found = bytes(itertools.islice(free, _NEEDED))
    return found if len(found) == _NEEDED else None
