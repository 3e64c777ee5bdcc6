"""The smallest reversible filter: the bits of each byte in reverse order."""

from __future__ import annotations

from typing import ClassVar, Final

from sluice_core.describe import FILTER, OBJECTS, PROXY, STORAGE_NODE, VOLUMES, ActionInfo
from sluice_filters.basic.bytemap import ByteMap

_TABLE: Final = bytes(int(f"{value:08b}"[::-1], 2) for value in range(256))


class BitReverse(ByteMap):
    """Stores each byte with its bits in reverse order."""

    info: ClassVar[ActionInfo] = ActionInfo(
        keyword="bitrev",
        kind=FILTER,
        help="store each byte with its bits in reverse order; an example",
        places=(PROXY, STORAGE_NODE),
        stage=750,
        changes_content=True,
        reversible=True,
        random_access=True,
        about=(OBJECTS, VOLUMES),
    )

    def table(self) -> bytes:
        return _TABLE
