"""Uploaded shared objects, read as bytes: whether this machine could load one, and what it exports.

Only the tables of the ELF file are read, within its bounds (elf(5)); nothing is loaded.
"""

from __future__ import annotations

import platform
import struct
from typing import Any, Final

from sluice_code.code_store import BadUpload

_HEADER: Final = struct.Struct("<16sHHIQQQIHHHHHH")
_SECTION: Final = struct.Struct("<IIQQQQIIQQ")
_SYMBOL: Final = struct.Struct("<IBBHQQ")
#: The first bytes of a file of 64 bits, little-endian, of the present version.
_IDENTITY: Final = b"\x7fELF\x02\x01\x01"
_SHARED: Final = 3
_DYNAMIC_SYMBOLS: Final = 11
_UNDEFINED: Final = 0
#: Numbers of machines, by the names that Python has for them.
_MACHINES: Final = {"x86_64": 62, "aarch64": 183}


def check_shared_object(code: bytes, symbol: str, machine: str = "") -> None:
    """
    :param symbol: the function that it must export
    :param machine: for which it must be, this one by default
    :raises BadUpload: when it is no shared object, is for another machine, or does not export the function
    """
    wanted = machine or platform.machine()
    if not code.startswith(_IDENTITY):
        raise BadUpload("the code is no ELF file of 64 bits, expected a shared object (.so)")
    try:
        header = _HEADER.unpack_from(code)
        kind, number = header[1], header[2]
        if kind != _SHARED:
            raise BadUpload("the code is an ELF file, but no shared object: build it with `-shared -fPIC`")
        if number != _MACHINES.get(wanted):
            name = next((one for one, other in _MACHINES.items() if other == number), str(number))
            raise BadUpload(f"the code is for machines of type `{name}`, expected `{wanted}`")
        if not _exports(code, symbol.encode() + b"\0", header):
            raise BadUpload(f"the code does not export `{symbol}`, is it a filter of nbdkit?")
    except (struct.error, IndexError) as error:
        raise BadUpload("the code is a damaged ELF file: a table lies outside of it") from error


def _exports(code: bytes, symbol: bytes, header: tuple[Any, ...]) -> bool:
    """Whether a dynamic symbol of this name is defined."""
    offset, size, count = header[6], header[11], header[12]
    sections = [_SECTION.unpack_from(code, offset + number * size) for number in range(count)]
    table = next((one for one in sections if one[1] == _DYNAMIC_SYMBOLS), None)
    if table is None:
        return False
    names_at = sections[table[6]][4]
    for at in range(table[4], table[4] + table[5], _SYMBOL.size):
        name, _, _, defined_in, _, _ = _SYMBOL.unpack_from(code, at)
        if defined_in != _UNDEFINED and code.startswith(symbol, names_at + name):
            return True
    return False
