"""Offsets of timestamps: how the bytes of an object are replaced without changing its time.

A PUT at the timestamp of the stored data with a greater offset (``swift.common.utils.timestamp``) replaces these data
and nothing else.  It is a compare-and-swap: every later PUT, POST or DELETE of a client wins against it.
``Last-Modified`` and listings stay as they are.

Two writers must never use the same offset for one object: replicas would hold different bytes under one timestamp, and
replication compares timestamps alone.  So each attempt draws its own: the stored offset rounded up to the next multiple
of 2**32, plus 32 random bits.  A counter would start again in a Redis that lost its data.

New content is ahead by many multiples at once (:data:`NEW_CONTENT`), so that it wins against writers that store the old
bytes again meanwhile.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from typing import Final

#: Bits of an offset that are drawn for each attempt.
RANDOM_BITS: Final = 32
#: Swift writes an offset with 16 hexadecimal digits.
MAX_OFFSET: Final = 2**64 - 1
#: Multiples of 2**32 by which new content is ahead: the old bytes may be stored this often while it is made.
NEW_CONTENT: Final = 16


def next_offset(stored: int, randbits: Callable[[int], int] = secrets.randbits, multiples: int = 1) -> int:
    """The offset of one attempt to replace data that are stored under the offset ``stored``.

    :param multiples: of 2**32 by which it is ahead
    :raises ValueError: when ``stored`` is no offset, or the highest possible one
    """
    if not 0 <= stored <= MAX_OFFSET:
        raise ValueError(f"`{stored}` is no offset, expected 0 to {MAX_OFFSET}")
    offset = ((stored >> RANDOM_BITS) + multiples << RANDOM_BITS) + randbits(RANDOM_BITS)
    if offset > MAX_OFFSET:
        raise ValueError(f"no offset is left above `{stored}`")
    return offset
