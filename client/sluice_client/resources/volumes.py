"""The columns of volumes, tiers, pools and operations."""

from __future__ import annotations

from typing import Any, Final

from sluice_client.resources.columns import Column, fields, lines, rate_text
from sluice_client.resources.policies import Columns

field = Column.field
_GIB: Final = 1 << 30


def gib_text(value: Any) -> str:
    """Bytes in GiB; empty when they are not known."""
    return "" if value is None else f"{value / _GIB:.1f} GiB"


def _size(value: Any) -> str:
    return f"{value} GiB"


def _rate(value: Any) -> str:
    return "" if value is None else rate_text(value)


def _measured(value: Any) -> str:
    """Return the measured capacity of a pool; empty when it was not measured."""
    if value is None:
        return ""
    rates = (f"{what} {rate_text(value[f'{what}_bw'])}, {value[f'{what}_iops']:.0f}/s" for what in ("read", "write"))
    return "\n".join(rates)


def _names(value: Any) -> str:
    return ", ".join(one["name"] for one in value)


def _filter(value: Any) -> str:
    params = ", ".join(f"{name}={one}" for name, one in value["params"].items())
    return f"{value['keyword']} {params}".rstrip()


def _attachment(value: Any) -> str:
    return f"{value['id']} {value['host']}".rstrip()


def _osd(value: Any) -> str:
    return f"osd.{value['id']} on {value['host']}: {value['objects']} objects, {value['primary']} of them primary"


def _consumer(value: Any) -> str:
    return "" if value is None else " ".join(filter(None, (value["node"] or value["host"], value["device"])))


VOLUME_LIST: Final[Columns] = (
    field("ID", "id"),
    *fields("Name", "Status"),
    field("Size", human=_size),
    *fields("Tier", "Node"),
    *fields("Project", "Pool", "Type", long=True),
    field("Created At", long=True),
)
VOLUME: Final[Columns] = (
    *fields("id", "name", "project", "status"),
    field("size", human=_size),
    field("cinder_size", human=_size),
    *fields("tier", "type", "pool", "node"),
    field("attachments", human=lines(_attachment)),
    field("filters", human=lines(_filter)),
    *fields(
        "filters_fixed_at", "header", "rates", "rates_in_force", "fault", "data_path", "path", "known", "created_at"
    ),
)
LOCALITY: Final[Columns] = (
    *fields("volume", "name", "project", "pool", "host", "back_end", "fabric"),
    field("consumer", human=_consumer),
    *fields("objects", "sampled"),
    field("osds", human=lines(_osd)),
    field("warnings", human=lines(str)),
)
OPERATION_LIST: Final[Columns] = (
    field("ID", "id"),
    *fields("What", "State", "Volume", "Reason"),
    field("Created At", long=True),
    field("Created By", long=True),
)
OPERATION: Final[Columns] = fields(
    "id", "what", "state", "step", "reason", "volume", "data", "created_at", "ended_at", "created_by"
)
SNAPSHOT_LIST: Final[Columns] = (
    field("ID", "id"),
    *fields("Name", "Status"),
    field("Size", human=_size),
    field("Created At", long=True),
)
TIER_LIST: Final[Columns] = (
    *fields("Name", "Resiliency"),
    field("Bandwidth", human=_rate),
    field("IOPS", "iops"),
    *fields("Fabric", "Cost", "State"),
    field("Pools", human=_names, long=True),
)
TIER: Final[Columns] = (
    *fields("name", "resiliency"),
    field("bandwidth", human=_rate),
    *fields("iops", "fabric", "cost", "state"),
    field("drift", human=lines(str)),
    field("type"),
    field("pools", human=_names),
    *fields("created_at", "created_by"),
)
MATCH: Final[Columns] = (*fields("tier", "cost"), field("pools", human=_names), *fields("others"))
POOL_LIST: Final[Columns] = (
    *fields("Name"),
    field("Total", human=gib_text),
    field("Free", human=gib_text),
    *fields("Capabilities"),
    field("Measured", human=_measured),
    field("Seen At", long=True),
)
CALIBRATION: Final[Columns] = (
    *fields("pool"),
    field("read_bw", human=rate_text),
    field("write_bw", human=rate_text),
    *fields("read_iops", "write_iops", "measured_at", "measured_by", "node"),
)
