"""What the agents of nodes reported last, as it is shown."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from sluice_dashboard.monitoring.names import NODE_STATES

#: State of a node → how its sign looks; the first are shown first.
_LEVELS: Final = {"failed": "failed", "away": "failed", "stale_history": "waiting", "ok": "active"}


def node_row(node: Mapping[str, Any]) -> dict[str, Any]:
    """A node of the API with what is wrong with it: ``left_out`` are plugins and isolated code that do not run."""
    left_out = {**node["plugins"], **{name: text for name, text in node["sandbox"].items() if text != "ok"}}
    return {
        **node,
        "state_name": str(NODE_STATES.get(node["state"], node["state"])),
        "level": _LEVELS.get(node["state"], "failed"),
        "left_out": sorted(left_out.items()),
    }


def node_rows(nodes: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """All nodes, first those that are not well, then those that refuse something, then by name."""
    order = {state: place for place, state in enumerate(_LEVELS)}
    rows = sorted(nodes, key=lambda node: (order.get(node["state"], 0), not node["refused"], node["node"]))
    return [node_row(node) for node in rows]
