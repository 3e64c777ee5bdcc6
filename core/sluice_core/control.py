"""The contract of global controllers: code that decides for the whole cluster, out of what is measured in it.

A policy speaks of one target; a controller sees all of them.  It is a class with one method::

    class Busy(Controller):
        info = ControllerInfo("busy", metrics=("PUTS_SEC",), help="compresses what the busiest tenant uploads")

        def compute_assignments(self, observation: Observation) -> Iterable[Assign]:
            values = observation.values("PUTS_SEC", "tenant")
            if values:
                yield Assign(max(values, key=values.__getitem__), "compression", {"engine": "zstd"})

It is called once each ``info.period`` seconds by one actor host of the cluster, in a process of its own
(``sluice_actors.controllers.manager``), and answers with *all* that shall be in force by its will.  The host compares
this with what is, and writes the difference; an answer that is the same writes nothing.  A controller that
raises, or takes longer than ten seconds and its period, changes nothing: what it set last stays, and the failure
is shown.  What it keeps in attributes is gone when another host takes over or its code is replaced.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from sluice_core.describe import Scalar
from sluice_core.messages.base import Message, PackedMessage


@dataclass(frozen=True, slots=True)
class ControllerInfo:
    """How a controller describes itself: ``name`` in lower case, the ``metrics`` it wants to see.

    ``period`` in seconds between two calls, at least one.
    """

    name: str
    metrics: tuple[str, ...] = ()
    period: float = 1.0
    help: str = ""


@dataclass(frozen=True, slots=True)
class Assign(Message):
    """One action that shall be in force: ``SET keyword WITH params ON place`` for ``target``.

    ``target`` is ``account[/container[/object]]`` or empty for the whole cluster; ``place`` is ``proxy``,
    ``storage_node``, or empty for where the keyword belongs.
    """

    target: str
    keyword: str
    params: Mapping[str, Scalar] = field(default_factory=dict)
    place: str = ""
    verb: str = "set"


@dataclass(frozen=True, slots=True)
class Observation(PackedMessage):
    """What is known at one moment.

    ``at`` is the unix second at which the newest complete window began.  ``metrics`` maps a metric to
    granularity → path → value in the metric's unit, of its newest window that is not older than three of its
    periods; silent targets are missing.  ``nodes`` maps a node to what its agent says: ``state``, ``epoch``,
    ``workers``.
    """

    at: float
    metrics: Mapping[str, Mapping[str, Mapping[str, float]]] = field(default_factory=dict)
    nodes: Mapping[str, Mapping[str, Scalar]] = field(default_factory=dict)

    def values(self, metric: str, granularity: str = "tenant") -> Mapping[str, float]:
        """Path → value; empty when nothing is known."""
        return self.metrics.get(metric, {}).get(granularity, {})


class Controller:
    """Base of all global controllers: wants nothing."""

    info: ClassVar[ControllerInfo]

    def compute_assignments(self, observation: Observation) -> Iterable[Assign]:
        """Everything that shall be in force now by this controller's will."""
        return ()
