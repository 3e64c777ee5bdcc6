"""ELF files of a few hundred bytes, as a linker would make them, for code that only reads them."""

from __future__ import annotations

import struct
from typing import Final

X86_64: Final = 62
AARCH64: Final = 183
_HEADER: Final = 64
_SECTION: Final = 64


def shared_object(symbol: str = "filter_init", machine: int = X86_64, kind: int = 3, defined_in: int = 1) -> bytes:
    """A file that exports ``symbol``; ``defined_in`` 0: the file only needs it."""
    names = b"\0" + symbol.encode() + b"\0"
    symbols = bytes(24) + struct.pack("<IBBHQQ", 1, 0x12, 0, defined_in, 0x1000, 16)
    tables = _HEADER + len(names) + len(symbols)
    identity = b"\x7fELF\x02\x01\x01".ljust(16, b"\0")
    header = struct.pack("<16sHHIQQQIHHHHHH", identity, kind, machine, 1, 0, 0, tables, 0, 64, 0, 0, _SECTION, 3, 0)
    sections = (
        bytes(_SECTION)
        + struct.pack("<IIQQQQIIQQ", 0, 3, 0, 0, _HEADER, len(names), 0, 0, 1, 0)
        + struct.pack("<IIQQQQIIQQ", 0, 11, 0, 0, _HEADER + len(names), len(symbols), 1, 1, 8, 24)
    )
    return header + names + symbols + sections
