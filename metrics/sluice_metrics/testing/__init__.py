"""The contract suite: what every metric must pass, ours and a stranger's.

Subclass and name your metric; pytest finds the rest::

    class TestMyMetric(MetricContract):
        metric = MyMetric
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import inf, isfinite
from operator import methodcaller
from typing import ClassVar, Final

from sluice_core.messages.policies import CLUSTER, CONTAINER, OBJECT, TENANT
from sluice_metrics.api import Metric
from sluice_metrics.meter.meter import Meter, RequestHandle, Row

METHODS: Final = ("GET", "PUT", "HEAD", "POST", "DELETE", "COPY", "OPTIONS", "WHATEVER")
SIZES: Final = (0, 1, 512, 65536, 5 << 30)
UNITS: Final = ("count", "per_second", "bytes", "bytes_per_second", "seconds", "fraction", "ratio")
#: What uploads may begin with.
SAMPLES: Final = (b"x", bytes(1024), b"some words, again and again " * 3000, bytes(range(256)) * 256)


class FakeClock:
    """A clock that stands until it is moved."""

    def __init__(self, now: float = 1000.0) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now


def whole_request(
    handle: RequestHandle, method: str, received: tuple[int, ...] = (), sent: tuple[int, ...] = (), end: bool = True
) -> None:
    """Tell ``handle`` the life of one request."""
    handle.admitted(method)
    for size in received:
        handle.received(method, size)
    for size in sent:
        handle.sent(method, size)
    if end:
        handle.ended(method)


def upload(handle: RequestHandle, *pieces: bytes) -> bool:
    """Tell ``handle`` of a PUT with ``pieces`` of a body; True when it was looked into."""
    handle.admitted("PUT")
    sample = taken = handle.sample()
    for piece in pieces:
        handle.received("PUT", len(piece))
        if sample is not None and sample.add(piece):
            sample.end()
            sample = None
    if sample is not None:
        sample.end()
    handle.ended("PUT")
    return taken is not None


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
        assert set(info.granularities) <= {OBJECT, TENANT, CONTAINER, CLUSTER}
        assert not (OBJECT in info.granularities and (self.metric.gauge or self.metric.sample_size)), "totals only"
        assert not (self.metric.gauge and self.metric.sample_size), "a level or a mean"
        assert not (self.metric.sample_size and CLUSTER in info.granularities), "means are not added up"

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

    def test_a_sample_has_an_amount_and_a_weight_that_depend_on_the_bytes_only(self) -> None:
        one, other = self.metric(), self.metric()
        for data in (sample[: self.metric.sample_size] for sample in SAMPLES):
            amount, weight = one.sampled(data)
            assert 0 <= amount < inf
            assert 0 < weight < inf
            assert one.sampled(data) == (amount, weight) == other.sampled(data)

    def test_the_host_never_has_to_switch_it_off(self) -> None:
        meter = Meter([self.metric()])
        for method in METHODS:
            whole_request(meter.begin("acme", "logs", "object"), method, SIZES, SIZES)
        for number, data in enumerate(SAMPLES):
            upload(meter.begin("acme", f"of-samples-{number}"), data)
        assert meter.failures == {}

    def _questions(self) -> Iterator[Callable[[Metric], float]]:
        for method in METHODS:
            yield methodcaller("admitted", method)
            yield methodcaller("ended", method)
            for size in SIZES:
                yield methodcaller("received", method, size)
                yield methodcaller("sent", method, size)
