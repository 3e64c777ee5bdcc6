"""The columns of bandwidth: rates are shown in MB/s (10^6 bytes per second), which their titles say."""

from __future__ import annotations

from typing import Any, Final

from sluice_client.resources.columns import MEGABYTE, Column, Data, fields, rate_text
from sluice_client.resources.policies import Columns, describe_infeasible

field = Column.field


def rate(title: str, key: str = "", long: bool = False) -> Column:
    """A rate; empty for no limit, or when it is not known."""
    name = key or title.lower()
    return Column(f"{title} MB/s", lambda data: megabytes(data.get(name)), long)


def megabytes(value: Any) -> float | None:
    """Bytes in megabytes, to the kilobyte."""
    return None if value is None else round(value / MEGABYTE, 3)


def storage_policy(data: Data) -> str:
    """Return a storage policy by its name, or by its index if only that is known; empty for none."""
    index = data.get("policy", -1)
    return str(data.get("storage_policy") or ("" if index == -1 else index))


def _missing(data: Data) -> float | None:
    return megabytes((data.get("infeasible") or {}).get("shortfall"))


_STORAGE_POLICY: Final = Column("Storage Policy", storage_policy)
#: Columns of the table's lines, and of the objects in it.
LINE_LIST: Final[Columns] = (
    *fields("Server", "Device", "Account", "Method"),
    field("Storage Policy", "policy"),
    field("Needed MB/s", "needed_BW"),
    field("Measured MB/s", "measured"),
    Column("Objects", lambda one: len(one["objects"])),
)
OBJECT_LIST: Final[Columns] = (
    *fields("Server", "Device", "Method"),
    field("Storage Policy", "policy"),
    field("Object", "oid"),
    field("Range"),
    field("Measured MB/s", "oid_calculated_BW"),
)
FLOW_LIST: Final[Columns] = (
    *fields("Account", "Container", "Method"),
    _STORAGE_POLICY,
    rate("Floor"),
    rate("Ceiling"),
    rate("Assigned", "share"),
    rate("Measured"),
    rate("Short"),
    rate("Met", long=True),
    *fields("Waiting", "Active", "Policies", long=True),
)
NODE_LIST: Final[Columns] = (
    *fields("Node", "Side", "Method"),
    rate("Capacity"),
    field("Known", "source"),
    rate("Assigned"),
    rate("Measured"),
    *fields("Server", "At", long=True),
)
PART_LIST: Final[Columns] = (
    *fields("Account", "Container", "Method"),
    _STORAGE_POLICY,
    *fields("Node", "Side", "Device"),
    rate("Assigned", "share"),
    rate("Measured"),
)
DEVICE_LIST: Final[Columns] = (
    *fields("Node", "Device", "Method", "Flows"),
    rate("Assigned", "share"),
    rate("Measured"),
)
PROMISED: Final[Columns] = fields("id", "policy", "state", "origin", "changed", "created_at", "created_by")
UNSET_LIST: Final[Columns] = fields("Policy")
SLO_LIST: Final[Columns] = (
    *fields("Account", "Name"),
    rate("Value"),
    *fields("Storage Policy", "Policy"),
    Column("Missing MB/s", _missing),
    *fields("Enabled", "Label", long=True),
)
SLO: Final[Columns] = (
    *fields("account", "label", "name", "text"),
    field("value", human=rate_text),
    *fields("storage_policy", "policy", "enabled", "changed"),
    field("infeasible", human=describe_infeasible),
)
