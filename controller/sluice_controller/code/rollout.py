"""The roll-out of a revision of uploaded code, computed from the reports of nodes.

A node runs a revision when its agent is alive and well and reports this revision.  A node that cannot run it keeps an
earlier revision, or none (0), and reports the reason.  A refusal concerns this revision once the node has
acknowledged the change that brought it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from sluice_controller.catalog.backend import Backend
from sluice_controller.catalog.nodes import AWAY, OK, Cluster, Enforcement, cluster_now, wait_until
from sluice_controller.code.revisions import RegisteredCode
from sluice_core.describe import NBDKIT
from sluice_core.messages.nodes import NodeReport

RUNNING: Final = "running"
REFUSED: Final = "refused"
WAITING: Final = "waiting"
STOPPED: Final = "stopped"
#: The states of an instance of a metric.
METRIC_STATES: Final = (RUNNING, REFUSED, WAITING, STOPPED, AWAY)


@dataclass(frozen=True, slots=True)
class NodeInstance:
    """The code on one node; ``revision`` is the running one, 0 for none."""

    node: str
    state: str
    reason: str
    revision: int


def instance(node: NodeReport, registered: RegisteredCode, cluster: Cluster) -> NodeInstance:
    """The code of ``registered`` on one node."""
    key = registered.upload.key
    revision = int(node.code.get(key, 0))
    state = cluster.state(node)
    if state == AWAY:
        return NodeInstance(node.node, AWAY, "", revision)
    if state != OK:
        return NodeInstance(node.node, REFUSED, f"{state}: {node.detail}", revision)
    if node.history != cluster.head.history or node.epoch < registered.epoch:
        return NodeInstance(node.node, WAITING, "", revision)
    if revision == registered.upload.revision:
        return NodeInstance(node.node, RUNNING, "", revision)
    reason = node.refused.get(f"upload/{key}", "")
    return NodeInstance(node.node, REFUSED if reason else WAITING, reason, revision)


def instances(found: RegisteredCode, cluster: Cluster) -> list[NodeInstance]:
    """The code of ``found`` on every node that needs it, by name."""
    return sorted((instance(node, found, cluster) for node in _nodes(found, cluster)), key=lambda one: one.node)


def _nodes(found: RegisteredCode, cluster: Cluster) -> list[NodeReport]:
    """All nodes; for a filter of volumes those that have a konnector."""
    return [node for node in cluster.nodes if node.konnector or found.upload.environment != NBDKIT]


def rollout(registered: RegisteredCode, cluster: Cluster) -> Enforcement:
    """The nodes with the newest revision; for a filter or metric without code no node is waited for."""
    all_of_them = instances(registered, cluster) if registered.upload.sha256 else []
    return Enforcement(
        total=len(_nodes(registered, cluster)),
        nodes=sum(one.state == RUNNING for one in all_of_them),
        refused=[
            {"node": one.node, "reason": one.reason, "revision": one.revision}
            for one in all_of_them
            if one.state == REFUSED
        ],
        waiting=[one.node for one in all_of_them if one.state == WAITING],
        away=[one.node for one in all_of_them if one.state == AWAY],
    )


def rollout_now(backend: Backend, found: RegisteredCode) -> Enforcement:
    """The current state of the roll-out."""
    return rollout(found, cluster_now(backend))


def wait_rolled_out(backend: Backend, found: RegisteredCode, seconds: float) -> None:
    """Wait until each live node has or refuses the code, at most ``seconds``; without a free slot return at once."""
    wait_until(backend, lambda: not rollout_now(backend, found).waiting, seconds)
