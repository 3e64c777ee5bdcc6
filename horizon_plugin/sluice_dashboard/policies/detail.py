"""One policy: its state, observed values beside thresholds, firings, and nodes."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _

from sluice_client import ApiError, Client
from sluice_dashboard import api
from sluice_dashboard.charts import MEAN, Mark, Plot, Series, Threshold, TimeRange, column, fetch_history, quantity
from sluice_dashboard.names import FIRINGS, name_of
from sluice_dashboard.policies import editor
from sluice_dashboard.policies.listing import policy_row
from sluice_dashboard.views import PageView, PlotView, Section

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
#: Members of a group or ALL on the page.
MEMBERS: Final = 20
#: Lines of a plot: as many as a reader can distinguish.
_LINES: Final = 8
#: Operator → column of a history point with the first value that meets the comparison, and its name.
_EXTREMES: Final[Mapping[str, tuple[int, Any]]] = {
    "<": (2, _("lowest")),
    "<=": (2, _("lowest")),
    ">": (3, _("highest")),
    ">=": (3, _("highest")),
}


@dataclass(frozen=True, slots=True)
class Reading:
    """A metric of one target beside its threshold, in the metric's ``unit``; ``value`` is None without a value."""

    metric: str
    member: str
    value: float | None
    operator: str
    limit: float
    unit: str

    @property
    def holds(self) -> bool | None:
        """Whether the condition is true for it; None if that is not known."""
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
    """The targets whose history of a condition's metric is plotted; an empty text is the cluster.

    For a group or ALL these are the members that were observed last.
    """
    if condition["path"] or condition["level"] == "cluster":
        return [condition["path"]]
    return sorted((policy["observed"] or {}).get("members", {}))[:most]


def target_name(policy: Mapping[str, Any], path: str) -> str:
    """The name of a measured target in the policy's sentence, if it is the policy's own target."""
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

    :param nodes: the names of all nodes; empty if the user may not list them
    """
    rows = [NodeRow(one["node"], "refused", one["reason"]) for one in enforced["refused"]]
    rows += [NodeRow(node, state) for state in ("waiting", "away") for node in enforced[state]]
    known = {one.node for one in rows}
    return rows + [NodeRow(node, "enforced") for node in sorted(nodes) if node not in known]


def fetch_state(client: Client, request: HttpRequest, policy_id: str) -> Mapping[str, Any]:
    """Return its present state."""
    policy = client.policy(policy_id)
    return {
        "row": policy_row(policy),
        "policy": policy,
        "readings": readings(policy),
        "firings": [{**one, "name": name_of(FIRINGS, one["what"])} for one in reversed(policy["firings"])],
    }


def fetch_nodes(client: Client, request: HttpRequest, policy_id: str) -> Mapping[str, Any]:
    """Return which nodes enforce it; without names of enforcing nodes if the user may not list nodes."""
    enforced = client.policy(policy_id)["enforced"]
    known = api.permissions(request).allow("nodes:list")
    try:
        names = [one["node"] for one in client.nodes()] if known else []
    except ApiError as error:
        if error.status != 403:
            raise
        names = []
    return {"rows": node_rows(enforced, names), "enforced": enforced, "named": bool(names)}


class DetailView(PageView):
    """One policy."""

    page_title = _("Policy")
    template_name = "sluice_dashboard/policies/detail.html"
    sections = {
        "state": Section("sluice_dashboard/policies/_state.html", fetch_state, seconds=3),
        "nodes": Section("sluice_dashboard/policies/_nodes.html", fetch_nodes, seconds=5),
    }

    def fetch(self, client: Client) -> Mapping[str, Any]:
        """Return its sentence, its meaning, and the comparisons of its condition."""
        policy = client.policy(self.kwargs["policy_id"])
        return {
            "policy": policy,
            "conditions": [(number, condition_text(one)) for number, one in enumerate(policy["conditions"])],
            "sentences": meaning(client, policy),
        }


def meaning(client: Client, policy: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The meaning of a policy; empty if its sentence would no longer be accepted."""
    try:
        sentences: list[dict[str, Any]] = editor.check(client, policy["source"], policy["id"])["sentences"]
    except ApiError as error:
        if error.status == 401 or error.status >= 500:
            raise
        return []
    return sentences


def condition_text(condition: Mapping[str, Any]) -> str:
    """A part of a condition, as ``PUTS_SEC > 3/s``."""
    return f"{condition['metric']} {condition['operator']} {quantity(condition['value'], condition['unit'])}"


class ConditionPlotView(PlotView):
    """The metric of one part of a condition over time, its threshold, and the firings."""

    def plot(self, client: Client, wanted: TimeRange) -> Plot:
        """For a group or ALL draw a line for each member, the first few."""
        policy = client.policy(self.kwargs["policy_id"])
        conditions = policy["conditions"][int(self.kwargs["number"]) :][:1]
        return Plot(
            series=[line for one in conditions for line in condition_lines(client, policy, one, wanted)],
            marks=list(firing_marks(policy, wanted)),
            thresholds=[Threshold(one["value"], condition_text(one)) for one in conditions],
            begin=wanted.begin,
            end=wanted.end,
        )


def condition_lines(
    client: Client, policy: Mapping[str, Any], condition: Mapping[str, Any], wanted: TimeRange
) -> Iterator[Series]:
    """The mean of the metric for each target; for a single one also the first value that meets the comparison."""
    targets = measured_targets(policy, condition, _LINES)
    for target in targets:
        points = fetch_history(client, condition["metric"], target, wanted)
        label = f"{condition['metric']} {target_name(policy, target)}".strip()
        yield Series(label, condition["unit"], column(points, MEAN))
        extreme = _EXTREMES.get(condition["operator"])
        if extreme and len(targets) == 1 and wanted.step > 1:
            number, name = extreme
            yield Series(f"{label}: {name}", condition["unit"], column(points, number))


def firing_marks(policy: Mapping[str, Any], wanted: TimeRange) -> Iterator[Mark]:
    """The actions of the policy's actor in that time."""
    for firing in policy["firings"]:
        at = datetime.fromisoformat(firing["at"]).timestamp()
        if wanted.begin <= at <= wanted.end:
            yield Mark(at, f"{name_of(FIRINGS, firing['what'])} {firing['member']}".strip())
