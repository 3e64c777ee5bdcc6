"""The columns of registered things (words, groups, stereotypes), of changes, and of the history of metrics."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from sluice_client.resources.columns import (
    Column,
    Data,
    ParamsColumn,
    fields,
    iso_time,
    lines,
    params_text,
    printable,
    rate_text,
    seconds_text,
)
from sluice_client.resources.policies import PERIOD, Columns

field = Column.field

MADE: Final[Columns] = fields("Created At", "Created By", long=True)
MADE_SHOWN: Final[Columns] = fields("created_at", "created_by")


def _of_activation(title: str, key: str = "", long: bool = False, human: Callable[[Any], str] | None = None) -> Column:
    name = key or title.lower()
    return Column(title, lambda one: one["activation"][name], long, human)


def _of_cluster(part: str) -> Callable[[Data], Any]:
    return lambda overview: (overview["cluster"] or {}).get(part)


def _floors(counts: Any) -> str:
    if counts["stale"]:
        return "no actor host measures"
    return (
        f"{counts['short']} not met, {rate_text(counts['shortfall'])} are missing" if counts["short"] else "all are met"
    )


def _location(one: Data) -> str:
    return f"{one['number']}: {one['address']}:{one['port']} {one['device']}"


METRIC: Final[Columns] = (
    *fields("name", "unit", "type", "granularities"),
    PERIOD,
    *fields("help", "aliases", "location", "registered"),
)
TERM_LIST: Final[Columns] = (*fields("Term", "Patterns"), field("Builtin", long=True), *MADE)
TERM: Final[Columns] = (*fields("term", "patterns", "builtin"), *MADE_SHOWN)
ALIAS_LIST: Final[Columns] = (
    *fields("Name", "Of", "Text"),
    *fields("Level", "Params", long=True),
    *MADE,
)
ALIAS: Final[Columns] = (*fields("name", "of", "text", "level", "params"), *MADE_SHOWN)
TENANT_GROUP_LIST: Final[Columns] = (*fields("Name", "Tenants"), field("Labels", long=True), *MADE)
TENANT_GROUP: Final[Columns] = (*fields("name", "tenants", "labels"), *MADE_SHOWN)
CONTAINER_GROUP_LIST: Final[Columns] = (*fields("Name", "Containers"), field("Labels", long=True), *MADE)
CONTAINER_GROUP: Final[Columns] = (*fields("name", "containers", "labels"), *MADE_SHOWN)
STEREOTYPE_LIST: Final[Columns] = (*fields("Name", "Help"), field("Text", long=True), *MADE)
STEREOTYPE: Final[Columns] = (*fields("name", "text", "help", "applied"), *MADE_SHOWN)
APPLIED_LIST: Final[Columns] = (*fields("Target", "Level", "Policies"), field("Label", long=True))
APPLIED: Final[Columns] = fields("target", "level", "label", "policies", "changed")
DEPLOYED_LIST: Final[Columns] = (
    field("Filter", "keyword"),
    ParamsColumn.field("Params"),
    *fields("Place", "Policy"),
    *fields("Enabled", "Origin", "Text", long=True),
)
DEPLOYED: Final[Columns] = (
    field("keyword"),
    ParamsColumn.field("params"),
    *fields("place", "policy", "text", "origin", "enabled", "changed"),
)
ACTIVATION_LIST: Final[Columns] = (
    field("Filter", "keyword"),
    _of_activation("URL", "url"),
    _of_activation("Federated"),
    _of_activation("Undo", long=True),
    _of_activation("Timeout", long=True, human=seconds_text),
)
ACTIVATION: Final[Columns] = (
    field("keyword"),
    *map(_of_activation, ("url", "undo")),
    _of_activation("timeout", human=seconds_text),
    *map(_of_activation, ("federated", "service")),
    *fields("help", "parameters"),
)
PLACEMENT_LIST: Final[Columns] = (*fields("Account", "Storage Policy"), *MADE)
PLACEMENT: Final[Columns] = (*fields("account", "storage_policy"), *MADE_SHOWN)
CONTAINER: Final[Columns] = fields("account", "container", "storage_policy", "created")
LOCALITY: Final[Columns] = (
    *fields("account", "container", "object", "storage_policy_index", "partition"),
    field("locations", human=lines(_location)),
)
CHANGE_LIST: Final[Columns] = (
    *fields("Epoch", "At", "By", "Policies", "Filters", "Entries"),
    *fields("Set", "Taken Back", long=True),
)


def _difference(one: Data) -> str:
    return f"{one['how']} {one['what']} {one['name']}"


def _place(target: Any) -> str:
    return "/".join(filter(None, (target["account"], target["container"], target["object"])))


def _verdicts(kinds: Any) -> str:
    """Return one line for each action in force, and below them the overridden ones and why."""
    found = [line for verdict in kinds for line in _verdict(verdict)]
    return "\n".join(map(printable, found))


def _held(kind: str, step: Data) -> str:
    verb = "delete " if step["verb"] == "delete" else ""
    where = f"({step['policy']}, {step['place']})"
    return " ".join(filter(None, (f"{kind}: {verb}{step['keyword']}", params_text(step), where)))


def _verdict(verdict: Data) -> list[str]:
    kind = verdict["kind"]
    found = [_held(kind, one) for one in (*verdict["pipeline"], *verdict["deletes"])]
    found += [f"{kind}: not {one['keyword']} ({one['policy']}): {one['message']}" for one in verdict["overridden"]]
    return [*found, f"{kind}: {verdict['more']} more are overridden"] if verdict["more"] else found


CHANGE: Final[Columns] = (
    *fields("epoch", "history", "at", "by", "policies", "filters", "entries", "set", "taken_back", "dropped"),
    field("differences", human=lines(_difference)),
)
OUTCOME: Final[Columns] = (
    *fields("plan", "epoch", "version", "create", "replace", "delete"),
    field("changes", human=lines(_difference)),
)
OVERVIEW: Final[Columns] = (
    field("policies"),
    field("floors", human=_floors),
    *(Column(part, _of_cluster(part)) for part in ("nodes", "hosts", "dependencies")),
)
PERMISSION_LIST: Final[Columns] = fields("Operation", "Allowed")
EFFECTIVE: Final[Columns] = (
    field("target", human=_place),
    *fields("request", "epoch"),
    field("kinds", human=_verdicts),
)


def row_of(point: list[Any]) -> Data:
    """Return a point of the controller with names for its values."""
    return dict(zip(("time", "mean", "min", "max", "p95"), point, strict=True))


POINT_LIST: Final[Columns] = (
    Column.field("Time", human=lambda at: iso_time(int(at * 1000))),
    *fields("Mean", "Min", "Max", "P95"),
)
SERIES_LIST: Final[Columns] = (
    *fields("Metric", "Level", "Target"),
    Column("Rest Of", lambda one: one["of"] if one["rest"] else ""),
    Column.field("Step", human=seconds_text),
    *fields("Since", long=True),
)
