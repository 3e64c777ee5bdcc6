"""The columns of every resource, in lists and when one is shown; one table for all commands and formats."""

from __future__ import annotations

from typing import Any, Final

from sluice_client.resources.columns import Column, Data, iso_time, lines, plainly

Columns = tuple[Column, ...]
of = Column.of


def enforced(policy: Data) -> str:
    """How many of all nodes enforce a policy."""
    return f"{policy['enforced']['nodes']}/{policy['enforced']['total']}"


def _of_enforced(key: str) -> Column:
    human = _refusals if key == "refused" else lines(str)
    return Column(key, lambda policy: policy["enforced"][key], human=human)


def _refusals(refused: Any) -> str:
    return lines(lambda one: f"{one['node']}: {one['reason']}")(refused)


def _observed(observed: Any) -> str:
    if observed is None:
        return ""
    values = list(observed["values"].items())
    values += [
        (f"{member}: {name}", value) for member, found in observed["members"].items() for name, value in found.items()
    ]
    return lines(lambda one: f"{one[0]} = {one[1]}")(values)


_firings: Final = lines(lambda one: f"{one['at']} {one['what']} {one['member']}".rstrip())


def _action(action: Data) -> str:
    words = [action["verb"], action["keyword"], plainly(action["params"]), "on", action["place"], action["life"]]
    return " ".join(filter(None, words))


def _infeasible(found: Any) -> str:
    return f"{found['shortfall'] / 1e6:.3f} MB/s are missing to keep what it promises"


def _activation(one: Data) -> str:
    undone = f", taken back by {one['undo']}" if one["undo"] else ""
    return f"{one['keyword']}: {one['url']}{undone}"


def _target(target: Any) -> str:
    return " ".join(filter(None, [target["level"], target["select"], target["name"]]))


def _running(code: tuple[str, int]) -> str:
    """``code`` is a key and the revision that runs."""
    return f"{code[0]}: revision {code[1]}"


def _items(found: Any) -> list[Any]:
    return list(found.items())


def _parameters(parameters: Any) -> str:
    return ", ".join(plainly(one["name"]) for one in parameters)


POLICY_LIST: Final[Columns] = (
    of("ID"),
    of("State"),
    Column("Enforced", enforced),
    of("Created At"),
    of("Policy"),
    of("Enabled", long=True),
    of("Created By", long=True),
    of("Epoch", long=True),
    of("Dynamic", long=True),
    of("Reason", long=True),
)
POLICY: Final[Columns] = (
    of("id"),
    of("policy"),
    of("source"),
    of("state"),
    of("reason"),
    of("enabled"),
    of("dynamic"),
    of("target", human=_target),
    of("condition"),
    of("sustained"),
    of("actions", human=lines(_action)),
    of("created_at"),
    of("created_by"),
    of("version"),
    of("epoch"),
    Column("enforced", enforced),
    *map(_of_enforced, ("refused", "waiting", "away")),
    of("observed", human=_observed),
    of("firings", human=_firings),
    of("origin"),
    of("activations", human=lines(_activation)),
    of("infeasible", human=_infeasible),
)
FIRING_LIST: Final[Columns] = (of("At"), of("What"), of("Member"), of("Window"))
CHECKED_LIST: Final[Columns] = (
    Column("Kind", lambda one: "dynamic" if one["dynamic"] else "static"),
    of("Policy"),
    of("Target", long=True, human=_target),
    of("Condition", long=True),
    of("Actions", long=True, human=lines(_action)),
)
NODE_LIST: Final[Columns] = (
    of("Node"),
    of("State"),
    of("Epoch"),
    of("Assignments"),
    of("Workers"),
    Column("Refused", lambda one: len(one["refused"])),
    of("Detail"),
    of("Code", long=True),
    of("Sandbox", long=True),
    of("Storage", long=True),
    of("Dropped", long=True),
    of("Software", long=True),
    of("Started At", long=True),
    of("Reported At", long=True),
)
NODE: Final[Columns] = (
    *map(of, ("node", "state", "detail", "history", "epoch")),
    of("refused", human=lines(lambda one: f"{one['assignment']}: {one['reason']}")),
    *map(of, ("workers", "assignments", "dropped", "storage")),
    of("code", human=lambda found: lines(_running)(_items(found))),
    of("sandbox", human=lambda found: lines(": ".join)(_items(found))),
    *map(of, ("software", "started_at", "reported_at")),
)
HEAD: Final[Columns] = (of("history"), of("epoch"))
FILTER_LIST: Final[Columns] = (
    of("Filter", "keyword"),
    of("Place", "default_place"),
    of("Parameters", human=_parameters),
    of("Help"),
    of("Kind", long=True),
    of("Places", long=True),
    of("Stage", long=True),
    of("Environment", long=True),
    of("Reversible", long=True),
    of("Protective", long=True),
    of("Available", long=True),
)
FILTER: Final[Columns] = (
    *map(of, ("keyword", "environment", "language", "main", "reverse", "self_service")),
    *map(of, ("revision", "size", "sha256", "help")),
    of("parameters", human=_parameters),
    of("capabilities"),
    Column("created_at", lambda one: iso_time(one["created"])),
    of("created_by"),
)
METRIC_LIST: Final[Columns] = (
    of("Metric", "name"),
    of("Unit"),
    of("Measured Per", "granularities"),
    of("Help"),
    of("Type", long=True),
    of("Period", long=True),
    of("Aliases", long=True),
    of("Location", long=True),
    of("Registered", long=True),
    of("Uploaded", long=True),
    of("Running", long=True),
    of("Revision", long=True),
)
HEALTH: Final[Columns] = (of("status"), of("dependencies", human=lambda found: lines(": ".join)(_items(found))))
