"""Where code is and where not, node by node or host by host: one shape for filters, metrics and controllers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

#: How the states of an instance look.
_LEVELS: Final = {"running": "ok", "refused": "danger", "failed": "danger", "waiting": "warning", "away": "warning"}


@dataclass(frozen=True, slots=True)
class Instance:
    """Code on a node or an actor host; ``revision`` is what it has there, 0 for none."""

    where: str
    state: str
    revision: int
    reason: str = ""

    @property
    def level(self) -> str:
        """How its state looks."""
        return _LEVELS.get(self.state, "unknown")

    @property
    def state_text(self) -> str:
        """The state for people."""
        texts: dict[str, str] = {
            "running": _("has it"),
            "refused": _("refuses"),
            "waiting": _("has not answered yet"),
            "away": _("does not report"),
            "stopped": _("stopped"),
            "starting": _("starting"),
            "failed": _("failed"),
        }
        return texts.get(self.state, self.state)


def filter_instances(found: Mapping[str, Any], nodes: Iterable[Mapping[str, Any]]) -> list[Instance]:
    """The newest revision of a filter on each node that is to have it, by name.

    :param nodes: as ``GET /nodes`` shows them; those that have it are known from them alone
    """
    rollout = found["rollout"]
    revisions = {node["node"]: int(node["code"].get(found["keyword"], 0)) for node in nodes}
    rows = {one["node"]: Instance(one["node"], "refused", one["revision"], one["reason"]) for one in rollout["refused"]}
    for state in ("waiting", "away"):
        rows |= {name: Instance(name, state, revisions.get(name, 0)) for name in rollout[state]}
    has = [name for name, one in revisions.items() if one == found["revision"] and name not in rows]
    if found["sha256"]:
        rows |= {name: Instance(name, "running", found["revision"]) for name in has}
    return [rows[name] for name in sorted(rows)]


def metric_instances(found: Iterable[Mapping[str, Any]]) -> list[Instance]:
    """Of ``GET /registry/metrics/{name}/instances``."""
    return [Instance(one["node"], one["state"], one["revision"], one["reason"]) for one in found]


def controller_instances(found: Iterable[Mapping[str, Any]]) -> list[Instance]:
    """Of ``GET /controllers/{name}/instances``."""
    return [Instance(one["host"], one["state"], one["revision"], one["reason"]) for one in found]


def summary(rows: Sequence[Instance], total: int) -> str:
    """How many have it and how many refuse."""
    has = sum(one.state == "running" for one in rows)
    refuse = sum(one.level == "danger" for one in rows)
    text = _("%(has)d of %(total)d nodes have the newest revision") % {"has": has, "total": total}
    refusals = ngettext("%d refuses it", "%d refuse it", refuse) % refuse  # xgettext finds none in an f-string
    return f"{text}, {refusals}" if refuse else str(text)
