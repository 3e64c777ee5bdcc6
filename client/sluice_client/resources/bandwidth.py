"""The columns of bandwidth: rates are shown in MB/s (10^6 bytes per second), which their titles say."""

from __future__ import annotations

from typing import Any, Final

from sluice_client.resources.columns import Column, Data
from sluice_client.resources.policies import Columns

of = Column.of
_MEGABYTE: Final = 1e6


def rate(title: str, key: str = "", long: bool = False) -> Column:
    """A rate; empty for as much as it likes, or when it is not known."""
    name = key or title.lower()
    return Column(f"{title} MB/s", lambda data: megabytes(data.get(name)), long)


def megabytes(value: Any) -> float | None:
    """Bytes in megabytes, to the kilobyte."""
    return None if value is None else round(value / _MEGABYTE, 3)


def storage_policy(data: Data) -> str:
    """A storage policy by its name, by its index where that is all that is known; empty for none."""
    index = data.get("policy", -1)
    return str(data.get("storage_policy") or ("" if index == -1 else index))


def _missing(data: Data) -> float | None:
    return megabytes((data.get("infeasible") or {}).get("shortfall"))


_STORAGE_POLICY: Final = Column("Storage Policy", storage_policy)
#: Lines of the table, and the objects in it.
LINE_LIST: Final[Columns] = (
    of("Server"),
    of("Device"),
    of("Account"),
    of("Storage Policy", "policy"),
    of("Needed MB/s", "needed_BW"),
    of("Read MB/s", "read"),
    Column("Objects", lambda one: len(one["objects"])),
)
OBJECT_LIST: Final[Columns] = (
    of("Server"),
    of("Device"),
    of("Storage Policy", "policy"),
    of("Object", "oid"),
    of("Range"),
    of("Read MB/s", "oid_calculated_BW"),
)
FLOW_LIST: Final[Columns] = (
    of("Account"),
    of("Container"),
    of("Method"),
    _STORAGE_POLICY,
    rate("Floor"),
    rate("Ceiling"),
    rate("Assigned", "share"),
    rate("Measured"),
    rate("Short"),
    rate("Met", long=True),
    of("Waiting", long=True),
    of("Active", long=True),
    of("Policies", long=True),
)
NODE_LIST: Final[Columns] = (
    of("Node"),
    of("Side"),
    of("Method"),
    rate("Capacity"),
    of("Known", "source"),
    rate("Assigned"),
    rate("Measured"),
    of("Server", long=True),
    of("At", long=True),
)
PART_LIST: Final[Columns] = (
    of("Account"),
    of("Container"),
    of("Method"),
    _STORAGE_POLICY,
    of("Node"),
    of("Side"),
    of("Device"),
    rate("Assigned", "share"),
    rate("Measured"),
)
DEVICE_LIST: Final[Columns] = (
    of("Node"),
    of("Device"),
    of("Method"),
    of("Flows"),
    rate("Assigned", "share"),
    rate("Measured"),
)
PROMISED: Final[Columns] = tuple(map(of, ("id", "policy", "state", "origin", "changed", "created_at", "created_by")))
SLO_LIST: Final[Columns] = (
    of("Account"),
    of("Name"),
    rate("Value"),
    of("Storage Policy"),
    of("Policy"),
    Column("Missing MB/s", _missing),
    of("Enabled", long=True),
    of("Label", long=True),
)
SLO: Final[Columns] = (
    *map(of, ("account", "label", "name", "text", "value", "storage_policy", "policy", "enabled", "changed")),
    of("infeasible"),
)
