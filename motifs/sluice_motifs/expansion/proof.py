"""Whether bytes are those that an item had, or no more than it may have."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Final

from sluice_motifs.api import ExpansionError
from sluice_motifs.storage.records import ItemView

#: Why what was made is not taken.
OTHER_BYTES: Final = "other bytes than it had were made"
#: Bytes after which a motif that may make other bytes than before is stopped: the largest object of Swift.
MOST_BYTES: Final = 5 << 30


def proven(pieces: Iterator[bytes], view: ItemView) -> Iterator[bytes]:
    """``pieces``, the last one only when all together have the size and the digest of the item.

    :raises ExpansionError: when they have not
    """
    plain = view.plain
    digest = hashlib.new(plain.algorithm, usedforsecurity=False)
    size, held = 0, b""
    for piece in pieces:
        size += len(piece)
        if size > plain.size:
            raise ExpansionError(f"more than the {plain.size} bytes that it had were made")
        digest.update(piece)
        if size < plain.size:
            yield piece
        else:
            held = piece
    if size < plain.size:
        raise ExpansionError(f"{size} bytes were made, expected {plain.size}")
    if digest.hexdigest() != plain.digest:
        raise ExpansionError(OTHER_BYTES)
    if held:
        yield held


def bounded(pieces: Iterator[bytes]) -> Iterator[bytes]:
    """``pieces``, as long as they are no more than an item may have.

    :raises ExpansionError: when they are
    """
    size = 0
    for piece in pieces:
        size += len(piece)
        if size > MOST_BYTES:
            raise ExpansionError(f"more than {MOST_BYTES} bytes were made")
        yield piece
