"""Spaces of objects with motifs for Prometheus: the limit, usage and cost of each.

The metrics contain names of accounts and containers, so they need a token and are not part of ``/metrics``.  All values
come from Redis: without Redis the answer is an error, and the target is down for Prometheus.  A space that no daemon
reports any more has no series.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

from prometheus_client import generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from sluice_controller.catalog.backend import Backend
from sluice_controller.motifs import account_of_space, space_name
from sluice_motif_control.messages import SpaceStatus
from sluice_motif_control.spaces import read_spaces

#: Value of a family's last label, empty if it has none → the number in a report.
Numbers = Mapping[str, Callable[[SpaceStatus], float]]


def exposition(backend: Backend) -> bytes:
    """All metrics, in Prometheus' text format.

    :raises PeerError: when Redis is unreachable
    """
    spaces = backend.store.run(read_spaces(backend.store.keys))
    found: bytes = generate_latest(SpaceCollector(spaces))
    return found


class SpaceCollector(Collector):
    """The reports of daemons."""

    def __init__(self, spaces: Sequence[SpaceStatus]) -> None:
        self._labelled = [(_labels(one), one) for one in spaces]

    def collect(self) -> Iterator[Metric]:
        """Called for each exposition."""
        for name, text, label, numbers in GAUGES:
            yield self._filled(GaugeMetricFamily(name, text, labels=[*LABELS, label]), numbers)
        for name, text, number in COUNTERS:
            yield self._filled(CounterMetricFamily(name, text, labels=LABELS), {"": number})
        states = GaugeMetricFamily("sluice_space_state", "1 for the state of the space", labels=[*LABELS, "state"])
        for labels, one in self._labelled:
            states.add_metric([*labels, one.state], 1)
        yield states

    def _filled(self, family: GaugeMetricFamily | CounterMetricFamily, numbers: Numbers) -> Metric:
        for word, number in numbers.items():
            for labels, one in self._labelled:
                family.add_metric([*labels, word] if word else labels, number(one))
        return family


def _labels(one: SpaceStatus) -> tuple[str, str]:
    """Account and container; both are empty for the cluster's space, the container for an account's."""
    name = space_name(one)
    account = account_of_space(name)
    return account, name.partition("/")[2] if account else ""


LABELS: Final = ("account", "container")
#: Name, help, the label that distinguishes the series of a space, and the numbers.
GAUGES: Final[tuple[tuple[str, str, str, Numbers], ...]] = (
    (
        "sluice_space_bytes",
        "plain bytes of objects with motifs: target, stored, contracted",
        "what",
        {
            "target": lambda one: one.target,
            "used": lambda one: one.used,
            "contracted": lambda one: one.contracted,
        },
    ),
    (
        "sluice_space_objects",
        "objects with motifs, stored and contracted",
        "what",
        {"used": lambda one: one.items, "contracted": lambda one: one.contracted_items},
    ),
    (
        "sluice_space_opens",
        "opens of the last hour of objects whose bytes were stored (hit), or had to be made (miss)",
        "result",
        {"hit": lambda one: one.hits, "miss": lambda one: one.misses},
    ),
)
#: Name without its suffix, help, and the number since the start of the daemon that keeps the space.
COUNTERS: Final[tuple[tuple[str, str, Callable[[SpaceStatus], float]], ...]] = (
    ("sluice_space_expansions", "expansions that a client waited for", lambda one: one.expansions),
    ("sluice_space_expansion_seconds", "seconds spent by these", lambda one: one.seconds_lost),
)
