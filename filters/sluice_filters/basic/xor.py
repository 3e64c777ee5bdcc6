"""The smallest reversible filter that takes a parameter: each byte XOR a constant."""

from __future__ import annotations

from functools import cache
from typing import Any, ClassVar

from sluice_core.describe import FILTER, OBJECTS, PROXY, STORAGE_NODE, VOLUMES, ActionInfo, Parameter
from sluice_filters.api import Record
from sluice_filters.basic.bytemap import ByteMap
from sluice_filters.stream import record_number


@cache
def _table(key: int) -> bytes:
    return bytes(value ^ key for value in range(256))


class Xor(ByteMap):
    """Stores each byte XOR ``key``.  The record has the key: this is no protection."""

    info: ClassVar[ActionInfo] = ActionInfo(
        keyword="xor",
        kind=FILTER,
        help="store each byte XOR a constant; an example, no protection",
        parameters=(Parameter("key", "int", "the constant", default=0x5A, minimum=1, maximum=255),),
        places=(PROXY, STORAGE_NODE),
        stage=800,
        changes_content=True,
        reversible=True,
        random_access=True,
        about=(OBJECTS, VOLUMES),
    )

    def table(self) -> bytes:
        return _table(int(self.params["key"] or 0))

    def said(self) -> dict[str, Any]:
        return {"key": self.params["key"]}

    def table_of(self, record: Record) -> bytes:
        return _table(record_number(record, "key", 1, 255, "xor"))
