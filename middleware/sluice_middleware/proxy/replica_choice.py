"""``egg:openstack-sluice#proxy_server``: Swift's proxy server, which prefers object servers with spare bandwidth.

Place in the pipeline.  It replaces ``egg:swift#proxy`` in ``[app:proxy-server]``, since only the application itself
sorts nodes (``sort_nodes`` in ``swift/proxy/server.py``).

Theory of operation.  Swift's order comes first: primaries before handoffs, the groups of ``read_affinity``, or
measured times (``sorting_method = timing``, which leaves no choice).  Among equal servers the order is drawn at random,
weighted by the square of their spare bandwidth: a strict order would send all proxies to the same server.  The actor
host that divides bandwidth smooths the spares.  While no objective is in force there are no spares, and Swift's order
stays.
"""

from __future__ import annotations

import functools
import inspect
import math
import random
from collections.abc import Callable, Mapping, Sequence
from itertools import groupby
from typing import Any, Final

from sluice_core.describe import PROXY
from sluice_core.options import Option, read_options
from sluice_middleware.bandwidth.client_registry import AgentStateReader
from sluice_middleware.bandwidth.io_levels import AgentState
from sluice_middleware.swift import proxy_app as swift

Node = Mapping[str, Any]

PREFIX: Final = "sluice_"
OPTIONS: Final = (
    Option(
        "sluice_agent_socket",
        "/run/sluice/agent.sock",
        "unix socket of the node's agent, which reports the object servers' spare bandwidth; empty: none",
    ),
)
#: Spares that differ by less count as equal.
SLIGHT: Final = 0.02
#: The weight of a server without spare bandwidth: it gets some requests, too.
_LEAST: Final = 0.05


class Application(swift.Application):  # type: ignore[misc]
    """Swift's, with another :meth:`sort_nodes`, and object controllers that cache their methods."""

    def __init__(self, conf: dict[str, Any], *args: Any, **kwargs: Any) -> None:
        """
        :raises OptionError: when Sluice's options cannot be used
        """
        super().__init__(conf, *args, **kwargs)
        given = {name: str(value) for name, value in conf.items() if name.startswith(PREFIX)}
        path = str(read_options(OPTIONS, given, "proxy-server.conf [app:proxy-server]")["sluice_agent_socket"])
        #: The last state that the agent sent.
        self.agent_state: Callable[[], AgentState] = AgentStateReader(path, PROXY)

    def get_controller(self, req: Any) -> tuple[Any, dict[str, Any]]:
        """As Swift's does."""
        kind, path = super().get_controller(req)
        return (with_cached_methods(kind) if path.get("object_name") else kind), path

    def sort_nodes(self, nodes: list[Any], policy: Any = None) -> list[Any]:
        """As Swift's; of equal object servers (those with a ``policy``), those with more spare bandwidth come first."""
        ordered: list[Any] = super().sort_nodes(nodes, policy)
        spares = self.agent_state().spares if policy is not None else {}
        if not spares:
            return ordered
        options = self.get_policy_options(policy)
        if options.sorting_method == "timing":
            return ordered
        key = options.read_affinity_sort_key if options.sorting_method == "affinity" else lambda node: 0
        ordered[:] = [one for _, group in groupby(ordered, key) for one in weighted_order(list(group), spares)]
        return ordered


@functools.cache
def with_cached_methods(kind: type[Any]) -> type[Any]:
    """The same class of Swift's controllers, with cached methods.

    Swift's proxy creates a controller for each request and searches all of its attributes for HTTP methods
    (``allowed_methods`` in ``swift/proxy/controllers/base.py``): 6 % of a proxy's time for a small download.  The
    result is the same for all objects of one class.  Not for account controllers, which remove some of their methods.
    """
    members = inspect.getmembers(kind, inspect.isfunction)
    names = frozenset(name for name, one in members if getattr(one, "publicly_accessible", False))
    return type(kind.__name__, (kind,), {"allowed_methods": property(lambda _: set(names))})


def weighted_order(
    nodes: Sequence[Node], spares: Mapping[str, float], draw: Callable[[], float] = random.random
) -> list[Node]:
    """``nodes`` in a random order, weighted by their spares; unchanged when all spares are equal.

    :param spares: ``ip:port`` → spare fraction, 0 to 1; a server that is not listed has the mean of the others
    :param draw: returns random numbers from 0 to 1
    """
    known = [find_spare(node, spares) for node in nodes]
    told = [one for one in known if one is not None]
    if not told or max(told) - min(told) < SLIGHT:
        return list(nodes)
    mean = sum(told) / len(told)
    # draws without replacement: the smallest of exponential variables, each with its weight as rate
    keys = [-math.log(1.0 - draw()) / max(mean if one is None else one, _LEAST) ** 2 for one in known]
    return [nodes[place] for place in sorted(range(len(nodes)), key=keys.__getitem__)]


def find_spare(node: Node, spares: Mapping[str, float]) -> float | None:
    """The spare of an object server by its address; with a port for each disk, that of its node's only entry."""
    room = spares.get(f"{node['ip']}:{node['port']}")
    if room is None:
        here = [spare for server, spare in spares.items() if server.rpartition(":")[0] == node["ip"]]
        room = here[0] if len(here) == 1 else None
    return room


def app_factory(global_conf: dict[str, Any], **local_conf: str) -> Application:
    """Paste's entry point, like Swift's."""
    conf = {**global_conf, **local_conf}
    conf["policy_config"] = swift.parse_per_policy_config(conf)
    app = Application(conf)
    app.check_config()
    return app
