"""Metric batches through a pipe: from the usage reader to the agent, which passes them on as they are.

A frame of the name :data:`ACCOUNTS` holds no batch (``sluice_rewrites.account_reports``).
"""

from __future__ import annotations

import struct
from typing import Final

from sluice_core.errors import DecodeError

#: In the place of a metric's name, which has capital letters.
ACCOUNTS: Final = "accounts"
#: Lengths of a metric's name and of the encoded batch, which follow.
HEAD: Final = struct.Struct("!HI")
#: A longer batch is none.
LONGEST_BATCH: Final = 256 << 20


def encode_frame(metric: str, body: bytes) -> bytes:
    """One batch with the name of its metric."""
    name = metric.encode()
    return HEAD.pack(len(name), len(body)) + name + body


def decode_head(raw: bytes) -> tuple[int, int]:
    """Lengths of the name and of the batch that follow ``raw``, :data:`HEAD` of them.

    :raises DecodeError: when these are no lengths of a frame
    """
    name, body = HEAD.unpack(raw)
    if not 0 < name <= 1000 or not 0 < body <= LONGEST_BATCH:
        raise DecodeError(f"not the head of a frame: lengths {name} and {body}", raw)
    return name, body
