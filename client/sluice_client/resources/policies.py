"""The columns of policies, and of what enforces them: nodes, filters, metrics, events."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from sluice_client.resources.columns import (
    Column,
    Data,
    fields,
    iso_time,
    lines,
    params_text,
    rate_text,
    seconds_text,
    to_text,
)

Columns = tuple[Column, ...]
field = Column.field


def enforced(policy: Data) -> str:
    """Return how many of all nodes enforce a policy."""
    return f"{policy['enforced']['nodes']}/{policy['enforced']['total']}"


def _of_enforced(key: str) -> Column:
    human = _refusals if key == "refused" else lines(str)
    return Column(key, lambda policy: policy["enforced"][key], human=human)


def _refusals(refused: Any) -> str:
    return lines(lambda one: f"{one['node']}: {one['reason']}")(refused)


def _observed(observed: Any) -> str:
    if observed is None:
        return ""
    units = observed.get("units", {})
    shown = [f"{name} = {_measured(value, units.get(name))}" for name, value in observed["values"].items()]
    shown += [
        f"{member}: {name} = {_measured(value, units.get(name))}"
        for member, found in observed["members"].items()
        for name, value in found.items()
    ]
    return lines(str)(shown)


def _measured(value: float | None, unit: str | None) -> str:
    """Return a metric's value; an older controller does not send the unit."""
    if value is None:
        return "silent"
    return _MEASURED[unit](value) if unit in _MEASURED else f"{value:.6g}"


_MEASURED: Final[dict[str | None, Callable[[float], str]]] = {
    "bytes_per_second": rate_text,
    "seconds": seconds_text,
    "per_second": lambda value: f"{value:.6g}/s",
    "fraction": lambda value: f"{100 * value:.6g}%",
}
_firings: Final = lines(lambda one: f"{one['at']} {one['what']} {one['member']}".rstrip())


def _action(action: Data) -> str:
    words = [action["verb"], action["keyword"], params_text(action), "on", action["place"], action["life"]]
    return " ".join(filter(None, words))


def describe_infeasible(found: Any) -> str:
    """Return how much bandwidth is missing for a floor."""
    return f"{rate_text(found['shortfall'])} are missing to keep what it promises"


def _activation(one: Data) -> str:
    undone = f", taken back by {one['undo']}" if one["undo"] else ""
    return f"{one['keyword']}: {one['url']}{undone}"


def _overridden(one: Data) -> str:
    return f"{one['keyword']} ({one['kind']}) of {one['policy']}: {one['reason']}"


def _target(target: Any) -> str:
    return " ".join(filter(None, [target["level"], target["select"], target["name"]]))


def _running(code: tuple[str, int]) -> str:
    """Return the text of ``code``, a key and the revision that runs."""
    return f"{code[0]}: revision {code[1]}"


def _items(found: Any) -> list[Any]:
    return list(found.items())


def _parameters(parameters: Any) -> str:
    return ", ".join(to_text(one["name"]) for one in parameters)


#: Columns of a single metric or controller.
PERIOD: Final = field("period", human=seconds_text)
POLICY_LIST: Final[Columns] = (
    *fields("ID", "State"),
    Column("Enforced", enforced),
    *fields("Created At", "Policy"),
    *fields("Enabled", "Created By", "Epoch", "Dynamic", "Reason", long=True),
)
POLICY: Final[Columns] = (
    *fields("id", "policy", "source", "state", "reason", "enabled", "dynamic"),
    field("target", human=_target),
    *fields("condition"),
    field("sustained", human=seconds_text),
    field("actions", human=lines(_action)),
    *fields("created_at", "created_by", "version", "epoch"),
    Column("enforced", enforced),
    *map(_of_enforced, ("refused", "waiting", "away")),
    field("observed", human=_observed),
    field("firings", human=_firings),
    field("origin"),
    field("activations", human=lines(_activation)),
    field("infeasible", human=describe_infeasible),
)
FIRING_LIST: Final[Columns] = fields("At", "What", "Member", "Window")
CHECKED_LIST: Final[Columns] = (
    Column("Kind", lambda one: "dynamic" if one["dynamic"] else "static"),
    field("Policy"),
    field("Target", long=True, human=_target),
    field("Condition", long=True),
    field("Actions", long=True, human=lines(_action)),
    field("Explanation", long=True, human=lines(lambda one: f"{one['about']}: {one['text']}")),
    field("Overrides", long=True, human=lines(_overridden)),
    field("Overridden By", long=True, human=lines(_overridden)),
)
CANDIDATE_LIST: Final[Columns] = (*fields("Text", "Kind", "Help"), *fields("Label", long=True))
NODE_LIST: Final[Columns] = (
    *fields("Node", "State", "Epoch", "Assignments", "Workers"),
    Column("Refused", lambda one: len(one["refused"])),
    field("Detail"),
    *fields("Code", "Sandbox", "Plugins", "Storage", "Dropped", "Software", "Started At", "Reported At", long=True),
)
NODE: Final[Columns] = (
    *fields("node", "state", "detail", "history", "epoch"),
    field("refused", human=lines(lambda one: f"{one['assignment']}: {one['reason']}")),
    *fields("workers", "assignments", "dropped", "storage"),
    field("code", human=lambda found: lines(_running)(_items(found))),
    field("sandbox", human=lambda found: lines(": ".join)(_items(found))),
    field("plugins", human=lambda found: lines(": ".join)(_items(found))),
    *fields("software", "started_at", "reported_at"),
)
EVENT_LIST: Final[Columns] = (
    *fields("At", "Severity", "Kind", "Text"),
    *fields("ID", "Node", "Policy", "Subject", "Source", "Fields", long=True),
)
HEAD: Final[Columns] = fields("history", "epoch")
FILTER_LIST: Final[Columns] = (
    field("Filter", "keyword"),
    field("Place", "default_place"),
    field("Parameters", human=_parameters),
    field("Help"),
    *fields("Kind", "Places", "Stage", "Environment", "Reversible", "Protective", "Available", long=True),
)
FILTER: Final[Columns] = (
    *fields("keyword", "installed", "environment", "language", "main", "reverse", "self_service"),
    *fields("revision", "size", "sha256", "help"),
    field("parameters", human=_parameters),
    field("capabilities"),
    Column("created_at", lambda one: iso_time(one["created"])),
    field("created_by"),
)
METRIC_LIST: Final[Columns] = (
    field("Metric", "name"),
    field("Unit"),
    field("Measured Per", "granularities"),
    field("Help"),
    field("Type", long=True),
    field("Period", long=True, human=seconds_text),
    *fields("Aliases", "Location", "Registered", "Uploaded", "Running", "Revision", long=True),
)
HEALTH: Final[Columns] = (field("status"), field("dependencies", human=lambda found: lines(": ".join)(_items(found))))
