"""The columns of uploaded code: its revisions, its roll-out, its instances; and of files beside it."""

from __future__ import annotations

from typing import Any, Final

from sluice_client.resources.columns import Column, Data, fields, lines, printable, seconds_text
from sluice_client.resources.policies import FILTER, PERIOD, Columns
from sluice_client.resources.registry import MADE, MADE_SHOWN, METRIC

field = Column.field


def rolled_out(filter_: Data) -> str:
    """Return how many of all nodes have the newest revision."""
    found = filter_["rollout"]
    return f"{found['nodes']}/{found['total']}"


def refusal(row: Data) -> str:
    """Return which node uses which revision, and why."""
    left = f"goes on with revision {row['revision']}" if row["revision"] else "has none"
    return printable(f"{row['node']} {left}: {row['reason']}")


def _revision(one: Data) -> str:
    return " ".join(filter(None, (f"{one['revision']}:", one["sha256"][:12], f"{one['size']} bytes", one["main"])))


def _rollout(found: Any) -> str:
    told = [f"{found['nodes']}/{found['total']}", *map(refusal, found["refused"])]
    told += [f"{name}: {', '.join(found[name])}" for name in ("waiting", "away") if found[name]]
    return "\n".join(map(printable, told))


def _of_rollout(key: str) -> Column:
    return Column(key, lambda one: one["rollout"][key], human=lines(refusal if key == "refused" else str))


_REVISIONS: Final = field("revisions", human=lines(_revision))
_CODE: Final[Columns] = (*fields("main", "revision", "size", "sha256"), _REVISIONS)

UPLOADED_FILTER: Final[Columns] = (*FILTER, _REVISIONS, field("rollout", human=_rollout))
ROLLOUT: Final[Columns] = (
    *fields("keyword", "environment", "revision", "size", "sha256"),
    Column("rolled_out", rolled_out),
    *map(_of_rollout, ("refused", "waiting", "away")),
    _REVISIONS,
)
UPLOADED_METRIC: Final[Columns] = (*METRIC, *fields("uploaded", "running"), *_CODE)
METRIC_INSTANCE_LIST: Final[Columns] = fields("Node", "State", "Revision", "Reason")
CONTROLLER_LIST: Final[Columns] = (
    *fields("Name", "State", "Hosts", "Revision", "Reason", "Help"),
    *fields("Running", "Metrics", long=True),
    field("Period", long=True, human=seconds_text),
    field("Main", long=True),
    *MADE,
)
CONTROLLER: Final[Columns] = (
    *fields("name", "state", "reason", "running", "hosts", "metrics"),
    PERIOD,
    field("help"),
    *_CODE,
    *MADE_SHOWN,
)
CONTROLLER_INSTANCE_LIST: Final[Columns] = (
    *fields("Host", "State", "Revision", "Assignments", "Last Run", "Reason"),
    *fields("Seconds", "Since", long=True),
)
DEPENDENCY_LIST: Final[Columns] = (
    *fields("Name", "Size", "Revision", "Filters"),
    field("Help", long=True),
    field("SHA256", "sha256", long=True),
    *MADE,
)
DEPENDENCY: Final[Columns] = (*fields("name", "help", "filters", "revision", "size", "sha256"), *MADE_SHOWN)
DEPLOYED_DEPENDENCY_LIST: Final[Columns] = fields("Name", "Filters")
