"""The columns of code that travels: its revisions, how far it has come, where it runs; and of files beside it."""

from __future__ import annotations

from typing import Any, Final

from sluice_client.resources.columns import Column, Data, lines, plain
from sluice_client.resources.policies import FILTER, Columns
from sluice_client.resources.registry import MADE, MADE_SHOWN, METRIC

of = Column.of


def rolled_out(filter_: Data) -> str:
    """How many of all nodes have the newest revision."""
    found = filter_["rollout"]
    return f"{found['nodes']}/{found['total']}"


def refusal(one: Data) -> str:
    """Which node goes on with what, and why."""
    left = f"goes on with revision {one['revision']}" if one["revision"] else "has none"
    return plain(f"{one['node']} {left}: {one['reason']}")


def _revision(one: Data) -> str:
    return " ".join(filter(None, (f"{one['revision']}:", one["sha256"][:12], f"{one['size']} bytes", one["main"])))


def _rollout(found: Any) -> str:
    told = [f"{found['nodes']}/{found['total']}", *map(refusal, found["refused"])]
    told += [f"{name}: {', '.join(found[name])}" for name in ("waiting", "away") if found[name]]
    return "\n".join(map(plain, told))


def _of_rollout(key: str) -> Column:
    return Column(key, lambda one: one["rollout"][key], human=lines(refusal if key == "refused" else str))


_REVISIONS: Final = of("revisions", human=lines(_revision))
_CODE: Final[Columns] = (*map(of, ("main", "revision", "size", "sha256")), _REVISIONS)

UPLOADED_FILTER: Final[Columns] = (*FILTER, _REVISIONS, of("rollout", human=_rollout))
ROLLOUT: Final[Columns] = (
    *map(of, ("keyword", "environment", "revision", "size", "sha256")),
    Column("rolled_out", rolled_out),
    *map(_of_rollout, ("refused", "waiting", "away")),
    _REVISIONS,
)
UPLOADED_METRIC: Final[Columns] = (*METRIC, of("uploaded"), of("running"), *_CODE)
METRIC_INSTANCE_LIST: Final[Columns] = (of("Node"), of("State"), of("Revision"), of("Reason"))
CONTROLLER_LIST: Final[Columns] = (
    of("Name"),
    of("State"),
    of("Hosts"),
    of("Revision"),
    of("Reason"),
    of("Help"),
    of("Running", long=True),
    of("Metrics", long=True),
    of("Period", long=True),
    of("Main", long=True),
    *MADE,
)
CONTROLLER: Final[Columns] = (
    *map(of, ("name", "state", "reason", "running", "hosts", "metrics", "period", "help")),
    *_CODE,
    *MADE_SHOWN,
)
CONTROLLER_INSTANCE_LIST: Final[Columns] = (
    of("Host"),
    of("State"),
    of("Revision"),
    of("Assignments"),
    of("Last Run"),
    of("Reason"),
    of("Seconds", long=True),
    of("Since", long=True),
)
DEPENDENCY_LIST: Final[Columns] = (
    of("Name"),
    of("Size"),
    of("Revision"),
    of("Filters"),
    of("Help", long=True),
    of("SHA256", "sha256", long=True),
    *MADE,
)
DEPENDENCY: Final[Columns] = (*map(of, ("name", "help", "filters", "revision", "size", "sha256")), *MADE_SHOWN)
DEPLOYED_DEPENDENCY_LIST: Final[Columns] = (of("Name"), of("Filters"))
