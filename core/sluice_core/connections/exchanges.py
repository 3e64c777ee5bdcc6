"""The exchanges and routing keys of the broker, each with its reason.

Agents and actor hosts use them; dots in the names of nodes, hosts and metrics become ``_`` in routing keys.
"""

from __future__ import annotations

from typing import Final

#: Topic exchange that agents publish metric batches to.
METRICS_EXCHANGE: Final = "sluice.metrics"
#: Topic exchange on which actor hosts publish which metrics they use, and the routing key of messages for all hosts.
VALUES_EXCHANGE: Final = "sluice.values"
EVERY_HOST: Final = "values.all"
#: Topic exchange on which agents publish writes to objects, for the caches of the other nodes.
WRITES_EXCHANGE: Final = "sluice.writes"

#: Topic exchange on which agents publish their loads, and one actor host the shares.
BANDWIDTH_EXCHANGE: Final = "sluice.bandwidth"


def load_routing_key(node: str) -> str:
    """Routing key of the loads of ``node``: ``load.<node>``; the dividing host binds ``load.#``."""
    return f"load.{node.replace('.', '_')}"


def shares_routing_key(node: str) -> str:
    """Routing key of the shares for ``node``: ``shares.<node>``."""
    return f"shares.{node.replace('.', '_')}"


def volume_shares_routing_key(node: str) -> str:
    """Routing key of the shares of volumes that ``node`` uses: ``volume_shares.<node>``."""
    return f"volume_shares.{node.replace('.', '_')}"


def rates_routing_key(controller: str) -> str:
    """Routing key of a controller's rates: ``rates.<controller>``; the dividing host binds ``rates.#``."""
    return f"rates.{controller.replace('.', '_')}"


def writes_routing_key(node: str) -> str:
    """Routing key of the writes of ``node``: ``writes.<node>``; every agent binds ``writes.#``."""
    return f"writes.{node.replace('.', '_')}"


def metric_routing_key(metric: str, node: str) -> str:
    """Routing key of one batch: ``metric.<METRIC>.<node>``; dots in names become ``_``.

    Bind ``metric.PUTS_SEC.*`` for one metric of all nodes, ``metric.*.node1`` for one
    node, ``metric.#`` for everything.
    """
    return f"metric.{metric.replace('.', '_')}.{node.replace('.', '_')}"
