"""Uploaded filters of volumes: shared objects with nbdkit's filter API, and their registration.

Only the tables of a shared object's ELF file are read, within its bounds (elf(5)): whether this machine could load it,
and its exports; nothing is loaded.
"""

from __future__ import annotations

import platform
import re
import struct
from typing import Any, Final

from sluice_code.code_store import BadUpload
from sluice_core.describe import FILTER, KONNECTOR, NBDKIT, VOLUMES, ActionInfo, Parameter
from sluice_core.messages.uploads import Upload

#: The function through which nbdkit loads a filter.
ENTRY: Final = "filter_init"
#: Maximum size of a shared object in bytes; each volume that uses it holds it in memory.
LARGEST: Final = 8 << 20
#: Words of a registration in ``capabilities``, and beside them.
_DECLARED: Final = frozenset({"changes_content", "parameters", "help"})
#: Types of parameters: each is passed as text.
_TYPES: Final = ("str", "int", "float", "bool")
#: Filters of konnectors that are not words of the language: an upload with such a name would never be used.
_TAKEN: Final = ("cache", "luks")
#: The stage of each: an uploaded filter is last in a stack.
_STAGE: Final = 1000
_KEYWORD: Final = re.compile(r"[a-z0-9_]+")
#: A parameter of nbdkit, in lower case.
_PARAMETER: Final = re.compile(r"[a-z][a-z0-9._-]*")


def describe_volume_filter(upload: Upload) -> ActionInfo:
    """Return the description of ``upload`` for the language and for konnectors.

    :raises BadUpload: for unknown or contradictory words
    """
    faults = [f"`{name}` is nothing a filter of volumes can declare" for name in sorted(set(upload.info) - _DECLARED)]
    if not _KEYWORD.fullmatch(upload.keyword):
        faults.append(f"keyword `{upload.keyword}`, expected lower case letters, digits and `_`")
    if upload.keyword in _TAKEN:
        faults.append(f"keyword `{upload.keyword}` is a filter that konnectors have already")
    changes = upload.info.get("changes_content", upload.reverse)
    if not isinstance(changes, bool):
        faults.append(f"`changes_content` is `{changes}`, expected true or false")
    elif changes and not upload.reverse:
        faults.append("it changes content and cannot be undone: the volume could not be read, expected `reverse`")
    if faults:
        raise BadUpload(f"filter `{upload.keyword}`: {'; '.join(faults)}")
    try:
        parameters = tuple(map(Parameter.from_data, upload.info.get("parameters", ())))
    except (TypeError, AttributeError) as error:
        raise BadUpload(f"description of filter `{upload.keyword}`: {error}") from error
    for one in parameters:
        _check_parameter(upload.keyword, one)
    return ActionInfo(
        keyword=upload.keyword,
        kind=FILTER,
        help=str(upload.info.get("help", f"uploaded filter of volumes, revision {upload.revision}")),
        parameters=parameters,
        places=(KONNECTOR,),
        default_place=KONNECTOR,
        stage=_STAGE,
        version=upload.revision,
        on_get=upload.reverse,
        changes_content=bool(changes),
        reversible=upload.reverse,
        random_access=True,
        environment=NBDKIT,
        about=(VOLUMES,),
    )


def _check_parameter(keyword: str, param: Parameter) -> None:
    if not isinstance(param.name, str) or not _PARAMETER.fullmatch(param.name):
        raise BadUpload(
            f"parameter `{param.name}` of filter `{keyword}`, expected a name in lower case as nbdkit's parameters have"
        )
    if param.type not in _TYPES:
        raise BadUpload(f"parameter `{param.name}` of filter `{keyword}` is of type `{param.type}`, expected {_TYPES}")


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
    :param machine: its required machine, this one by default
    :raises BadUpload: when it is not a shared object, is for another machine, or does not export the function
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
