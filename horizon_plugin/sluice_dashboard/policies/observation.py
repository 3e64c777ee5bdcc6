"""What a policy's actor observes, beside what its condition wants, and which nodes enforce it."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

#: Operator of a condition → the comparison.
_COMPARE: Final[Mapping[str, Callable[[float, float], bool]]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "=": operator.eq,
    "==": operator.eq,
    "!=": operator.ne,
}
#: Members of a group or ALL that are shown.
MEMBERS: Final = 20


@dataclass(frozen=True, slots=True)
class Reading:
    """A metric of one target beside its threshold, in the metric's ``unit``; ``value`` is None while it is silent."""

    metric: str
    member: str
    value: float | None
    operator: str
    limit: float
    unit: str

    @property
    def holds(self) -> bool | None:
        """Whether the condition holds for it; None where that is not known."""
        compare = _COMPARE.get(self.operator)
        return None if self.value is None or compare is None else compare(self.value, self.limit)


def readings(policy: Mapping[str, Any]) -> list[Reading]:
    """A reading of each part of the condition; of a group or ALL of each member, the first :data:`MEMBERS`."""
    return [reading for one in policy["conditions"] for reading in _readings(one, policy["observed"] or {})]


def _readings(condition: Mapping[str, Any], observed: Mapping[str, Any]) -> Iterator[Reading]:
    metric = condition["metric"]
    of: Mapping[str, Mapping[str, float | None]] = observed.get("members") or {"": observed.get("values", {})}
    for member in sorted(of)[:MEMBERS]:
        yield Reading(
            metric, member, of[member].get(metric), condition["operator"], condition["value"], condition["unit"]
        )


def measured_targets(policy: Mapping[str, Any], condition: Mapping[str, Any], most: int) -> list[str]:
    """Of which targets the history of a condition's metric is drawn; empty text is the cluster.

    Of a group or ALL these are the members that were observed last.
    """
    if condition["path"] or condition["level"] == "cluster":
        return [condition["path"]]
    return sorted((policy["observed"] or {}).get("members", {}))[:most]


def target_name(policy: Mapping[str, Any], path: str) -> str:
    """What a measured target is called in the policy's sentence, where it is the policy's own."""
    target = policy["target"]
    return str(target["label"] or path) if path == target["name"] else path


@dataclass(frozen=True, slots=True)
class NodeRow:
    """Whether a node enforces a policy: ``state`` is ``enforced``, ``refused``, ``waiting`` or ``away``."""

    node: str
    state: str
    reason: str = ""


def node_rows(enforced: Mapping[str, Any], nodes: Iterable[str]) -> list[NodeRow]:
    """A row of each node, first those that do not enforce it.

    :param nodes: the names of all nodes; empty where one may not know them
    """
    rows = [NodeRow(one["node"], "refused", one["reason"]) for one in enforced["refused"]]
    rows += [NodeRow(node, state) for state in ("waiting", "away") for node in enforced[state]]
    known = {one.node for one in rows}
    return rows + [NodeRow(node, "enforced") for node in sorted(nodes) if node not in known]
