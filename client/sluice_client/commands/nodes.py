"""``node``: machines that enforce policies."""

from __future__ import annotations

from typing import Final

from sluice_client.command_base import crud
from sluice_client.command_base.arguments import Argument
from sluice_client.command_base.command import ShowCommand
from sluice_client.resources import policies

STATES: Final = ("ok", "stale_history", "failed", "away")
NODE: Final = crud.Resource(
    "node",
    "/nodes",
    policies.NODE_LIST,
    policies.NODE,
    key="node",
    filters=(
        Argument("--state", "only those in this state", {"choices": STATES}),
        Argument("--refusing", "only those that refuse something", {"action": "store_const", "const": "true"}),
    ),
)


class ListNodes(crud.ListResources, resource=NODE, words="node list"):
    """List nodes and their progress."""

    examples = (
        "--long",
        "--refusing -f json",
    )


class ShowNode(crud.ShowResource, resource=NODE, words="node show"):
    """Show a node: its refusals, the uploaded code that it can run, and the state of its isolated environments."""

    examples = ("storage-7",)


class DeleteNode(crud.DeleteResources, resource=NODE, words="node delete", earlier="node forget"):
    """Delete nodes that were removed; a running node reports itself again."""

    examples = ("storage-7 storage-8",)


class AdoptHistory(ShowCommand, words="history adopt", earlier="node adopt", calls="adopt"):
    """Let all nodes accept the current history, after Redis was wiped or failed over."""

    columns = policies.HEAD
    asks = "let all nodes accept the current history"
