"""The contract suite: what every metric must pass, ours and a stranger's.

Subclass and name your metric; pytest finds the rest::

    class TestMyMetric(MetricContract):
        metric = MyMetric
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import isfinite
from operator import methodcaller
from typing import ClassVar, Final

from sluice_core.messages import CONTAINER, TENANT
from sluice_metrics.api import Metric
from sluice_metrics.meter import Handle, Meter, Row

METHODS: Final = ("GET", "PUT", "HEAD", "POST", "DELETE", "COPY", "OPTIONS", "WHATEVER")
SIZES: Final = (0, 1, 512, 65536, 5 << 30)
UNITS: Final = ("count", "per_second", "bytes", "bytes_per_second", "seconds", "fraction")


class FakeClock:
    """A clock that stands until it is moved."""

    def __init__(self, now: float = 1000.0) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now


def whole_request(
    handle: Handle, method: str, received: tuple[int, ...] = (), sent: tuple[int, ...] = (), end: bool = True
) -> None:
    """Tell ``handle`` the life of one request."""
    handle.admitted(method)
    for size in received:
        handle.received(method, size)
    for size in sent:
        handle.sent(method, size)
    if end:
        handle.ended(method)


def values(meter: Meter, rows: list[Row]) -> dict[str, dict[str, float]]:
    """``rows`` as path → metric → value."""
    return {path: dict(zip(meter.names, row, strict=True)) for path, _, row in rows}


class MetricContract:
    """Every promise of ``sluice_metrics.api``, as tests."""

    metric: ClassVar[type[Metric]]

    def test_describes_itself_consistently(self) -> None:
        info = self.metric.info
        assert info.name == info.name.upper()
        assert info.name.replace("_", "").isalnum()
        assert info.unit in UNITS
        assert info.help
        assert info.period > 0
        assert set(info.granularities) <= {TENANT, CONTAINER, "cluster"}

    def test_answers_are_finite_numbers_that_depend_on_the_arguments_only(self) -> None:
        one, other = self.metric(), self.metric()
        for ask in self._questions():
            first = ask(one)
            assert isinstance(first, int | float)
            assert isfinite(first)
            assert ask(one) == ask(one) == first == ask(other)

    def test_a_running_total_never_shrinks(self) -> None:
        if not self.metric.gauge:
            assert all(ask(self.metric()) >= 0 for ask in self._questions())

    def test_a_gauge_is_back_at_zero_when_a_request_ends(self) -> None:
        if self.metric.gauge:
            for method in METHODS:
                one = self.metric()
                level = one.admitted(method)
                assert level >= 0
                assert level + one.ended(method) == 0

    def test_the_host_never_has_to_switch_it_off(self) -> None:
        meter = Meter([self.metric()])
        for method in METHODS:
            whole_request(meter.begin("acme", "logs"), method, SIZES, SIZES)
        assert meter.failures == {}

    def _questions(self) -> Iterator[Callable[[Metric], float]]:
        for method in METHODS:
            yield methodcaller("admitted", method)
            yield methodcaller("ended", method)
            for size in SIZES:
                yield methodcaller("received", method, size)
                yield methodcaller("sent", method, size)
