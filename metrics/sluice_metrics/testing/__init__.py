"""The contract suite, which every metric must pass, built-in or third-party.

Subclass and name your metric; pytest finds the rest::

    class TestMyMetric(MetricContract):
        metric = MyMetric
"""

from __future__ import annotations

from typing import ClassVar

from sluice_metrics.api import Metric, Response
from sluice_metrics.contract import check_answers, check_host, check_level, check_responses, check_samples
from sluice_metrics.meter.meter import Meter, RequestHandle
from sluice_metrics.meter.rows import Row
from sluice_metrics.native import refusal_reason


class FakeClock:
    """A clock that does not move by itself."""

    def __init__(self, now: float = 1000.0) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now


def whole_request(
    handle: RequestHandle,
    method: str,
    received: tuple[int, ...] = (),
    sent: tuple[int, ...] = (),
    end: bool = True,
    response: Response | None = None,
    seconds: float = 0.1,
) -> None:
    """Report one whole request to ``handle``; ``response`` is an empty 200 by default."""
    handle.admitted(method)
    for size in received:
        handle.received(method, size)
    for size in sent:
        handle.sent(method, size)
    if end:
        handle.ended(method)
        handle.responded(response or Response(method, 200), seconds)


def upload(handle: RequestHandle, *pieces: bytes) -> bool:
    """Report a PUT with ``pieces`` of a body to ``handle``; return True when it was sampled."""
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
    """Every rule of ``sluice_metrics.api``, as tests."""

    metric: ClassVar[type[Metric]]

    def test_describes_itself_consistently(self) -> None:
        assert refusal_reason(self.metric) == ""

    def test_answers_are_finite_numbers_that_depend_on_the_arguments_only(self) -> None:
        check_answers(self.metric)

    def test_a_gauge_is_back_at_zero_when_a_request_ends(self) -> None:
        check_level(self.metric)

    def test_a_sample_has_an_amount_and_a_weight_that_depend_on_the_bytes_only(self) -> None:
        check_samples(self.metric)

    def test_a_response_has_an_amount_and_a_weight_that_depend_on_it_only(self) -> None:
        check_responses(self.metric)

    def test_the_host_never_has_to_switch_it_off(self) -> None:
        check_host(self.metric)
