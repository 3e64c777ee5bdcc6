"""The columns of what operators register: words, groups, stereotypes; and of changes to all of it."""

from __future__ import annotations

from typing import Any, Final

from sluice_client.resources.columns import Column, Data, lines, plain, plainly
from sluice_client.resources.policies import Columns

of = Column.of

MADE: Final[Columns] = (of("Created At", long=True), of("Created By", long=True))
MADE_SHOWN: Final[Columns] = (of("created_at"), of("created_by"))


def _of_activation(title: str, key: str = "", long: bool = False) -> Column:
    name = key or title.lower()
    return Column(title, lambda one: one["activation"][name], long)


def _location(one: Data) -> str:
    return f"{one['number']}: {one['address']}:{one['port']} {one['device']}"


METRIC: Final[Columns] = tuple(
    map(of, ("name", "unit", "type", "granularities", "period", "help", "aliases", "location", "registered"))
)
TERM_LIST: Final[Columns] = (of("Term"), of("Patterns"), of("Builtin", long=True), *MADE)
TERM: Final[Columns] = (*map(of, ("term", "patterns", "builtin")), *MADE_SHOWN)
ALIAS_LIST: Final[Columns] = (of("Name"), of("Of"), of("Text"), of("Level", long=True), of("Params", long=True), *MADE)
ALIAS: Final[Columns] = (*map(of, ("name", "of", "text", "level", "params")), *MADE_SHOWN)
TENANT_GROUP_LIST: Final[Columns] = (of("Name"), of("Tenants"), of("Labels", long=True), *MADE)
TENANT_GROUP: Final[Columns] = (*map(of, ("name", "tenants", "labels")), *MADE_SHOWN)
CONTAINER_GROUP_LIST: Final[Columns] = (of("Name"), of("Containers"), of("Labels", long=True), *MADE)
CONTAINER_GROUP: Final[Columns] = (*map(of, ("name", "containers", "labels")), *MADE_SHOWN)
STEREOTYPE_LIST: Final[Columns] = (of("Name"), of("Help"), of("Text", long=True), *MADE)
STEREOTYPE: Final[Columns] = (*map(of, ("name", "text", "help", "applied")), *MADE_SHOWN)
APPLIED_LIST: Final[Columns] = (of("Target"), of("Level"), of("Policies"), of("Label", long=True))
APPLIED: Final[Columns] = tuple(map(of, ("target", "level", "label", "policies", "changed")))
DEPLOYED_LIST: Final[Columns] = (
    of("Filter", "keyword"),
    of("Params"),
    of("Place"),
    of("Policy"),
    of("Enabled", long=True),
    of("Origin", long=True),
    of("Text", long=True),
)
DEPLOYED: Final[Columns] = tuple(
    map(of, ("keyword", "params", "place", "policy", "text", "origin", "enabled", "changed"))
)
ACTIVATION_LIST: Final[Columns] = (
    of("Filter", "keyword"),
    _of_activation("URL", "url"),
    _of_activation("Federated"),
    _of_activation("Undo", long=True),
    _of_activation("Timeout", long=True),
)
ACTIVATION: Final[Columns] = (of("keyword"), *map(_of_activation, ("url", "undo", "timeout", "federated")))
PLACEMENT_LIST: Final[Columns] = (of("Account"), of("Storage Policy"), *MADE)
PLACEMENT: Final[Columns] = (of("account"), of("storage_policy"), *MADE_SHOWN)
CONTAINER: Final[Columns] = tuple(map(of, ("account", "container", "storage_policy", "created")))
LOCALITY: Final[Columns] = (
    *map(of, ("account", "container", "object", "storage_policy_index", "partition")),
    of("locations", human=lines(_location)),
)
CHANGE_LIST: Final[Columns] = (
    of("Epoch"),
    of("At"),
    of("By"),
    of("Policies"),
    of("Filters"),
    of("Entries"),
    of("Set", long=True),
    of("Taken Back", long=True),
)


def _difference(one: Data) -> str:
    return f"{one['how']} {one['what']} {one['name']}"


def _place(target: Any) -> str:
    return "/".join(filter(None, (target["account"], target["container"], target["object"])))


def _verdicts(kinds: Any) -> str:
    """One line for each action that holds, and below them what is overridden and why."""
    found = [line for verdict in kinds for line in _verdict(verdict)]
    return "\n".join(map(plain, found))


def _held(kind: str, step: Data) -> str:
    verb = "delete " if step["verb"] == "delete" else ""
    where = f"({step['policy']}, {step['place']})"
    return " ".join(filter(None, (f"{kind}: {verb}{step['keyword']}", plainly(step["params"]), where)))


def _verdict(verdict: Data) -> list[str]:
    kind = verdict["kind"]
    found = [_held(kind, one) for one in (*verdict["pipeline"], *verdict["deletes"])]
    found += [f"{kind}: not {one['keyword']} ({one['policy']}): {one['message']}" for one in verdict["overridden"]]
    return [*found, f"{kind}: {verdict['more']} more are overridden"] if verdict["more"] else found


CHANGE: Final[Columns] = (
    *map(of, ("epoch", "history", "at", "by", "policies", "filters", "entries", "set", "taken_back", "dropped")),
    of("differences", human=lines(_difference)),
)
OUTCOME: Final[Columns] = (
    *map(of, ("plan", "epoch", "version", "create", "replace", "delete")),
    of("changes", human=lines(_difference)),
)
EFFECTIVE: Final[Columns] = (of("target", human=_place), of("request"), of("epoch"), of("kinds", human=_verdicts))
