"""Checks of a metric against the contract of ``sluice_metrics.api``, for uploads and for the contract suite.

Each raises :class:`~sluice_code.code_store.BadUpload` with the fault of the metric.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import isfinite
from operator import methodcaller
from typing import Final

from sluice_code.code_store import BadUpload
from sluice_code.loader import refuse_failures
from sluice_metrics.api import HIT, MISS, Metric, Response
from sluice_metrics.meter.meter import Meter

METHODS: Final = ("GET", "PUT", "HEAD", "POST", "DELETE", "COPY", "OPTIONS", "WHATEVER")
#: One of each kind.
RESPONSES: Final = tuple(
    Response(method, status, cache, part)
    for method in METHODS
    for status in (200, 206, 304, 404, 499, 500, 503, 507)
    for cache in ("", HIT, MISS)
    for part in (False, True)
)
_SIZES: Final = (0, 1, 512, 65_536, 5 << 30)
_UPLOADS: Final = (b"x", bytes(1024), b"some words, again and again " * 3000, bytes(range(256)) * 256)


def check_contract(metric_class: type[Metric]) -> None:
    """Run every check of this module."""
    for check in (check_answers, check_level, check_samples, check_responses, check_host):
        check(metric_class)


def check_answers(metric_class: type[Metric]) -> None:
    """Check that answers are finite numbers that depend on the arguments only, and that those of a total are not
    negative.
    """
    one, other = _create(metric_class), _create(metric_class)
    for name, ask in _questions():
        _check_answer(metric_class, name, one, other, ask)


def _create(found: type[Metric]) -> Metric:
    with refuse_failures("it cannot be made"):
        return found()


def _questions() -> Iterator[tuple[str, Callable[[Metric], float]]]:
    for method in METHODS:
        for event in ("admitted", "ended"):
            yield f"{event}(`{method}`)", methodcaller(event, method)
        for size in _SIZES:
            for event in ("received", "sent"):
                yield f"{event}(`{method}`, {size})", methodcaller(event, method, size)


def _check_answer(
    metric_class: type[Metric], name: str, one: Metric, other: Metric, ask: Callable[[Metric], float]
) -> None:
    with refuse_failures(f"{name} fails"):
        answer = ask(one)
        again = (ask(one), ask(other))
        number = isinstance(answer, int | float) and isfinite(answer)
    if not number:
        raise BadUpload(f"{name} is `{answer!r}`, expected a finite number")
    if again != (answer, answer):
        raise BadUpload(f"{name} is `{answer}` and then `{again[0]}`, expected what depends on the arguments only")
    if answer < 0 and not metric_class.gauge:
        raise BadUpload(f"{name} is `{answer}`, expected a total that never shrinks")


def check_level(metric_class: type[Metric]) -> None:
    """Check that a level returns to its value at the end of a request."""
    one = _create(metric_class)
    for method in METHODS if metric_class.gauge else ():
        up, down = one.admitted(method), one.ended(method)
        if up < 0 or up + down != 0:
            raise BadUpload(f"a `{method}` takes the level up by `{up}` and down by `{-down}`, expected the same")


def check_samples(metric_class: type[Metric]) -> None:
    """Check that a sample has an amount and a weight that depend on its bytes only."""
    one, other = _create(metric_class), _create(metric_class)
    for data in (upload[: metric_class.sample_size] for upload in _UPLOADS if metric_class.sample_size):
        with refuse_failures(f"sampled() of {len(data)} bytes fails"):
            amount, weight = first = one.sampled(data)
            again = (one.sampled(data), other.sampled(data))
            fine = isfinite(amount) and isfinite(weight) and amount >= 0 and weight > 0
        if not fine:
            raise BadUpload(f"sampled() of {len(data)} bytes is `{first}`, expected an amount and a weight above zero")
        if again != (first, first):
            raise BadUpload("sampled() gives another answer for the same bytes")


def check_responses(metric_class: type[Metric]) -> None:
    """Check that a response has an amount and a weight that depend on it only; without weight there is no amount."""
    one, other = _create(metric_class), _create(metric_class)
    for response in RESPONSES if metric_class.mean or metric_class.quantile else ():
        with refuse_failures(f"responded({response}) fails"):
            amount, weight = first = one.responded(response)
            again = (one.responded(response), other.responded(response))
            fine = isfinite(amount) and isfinite(weight) and amount >= 0 and weight >= 0 and (weight > 0 or not amount)
        if not fine:
            raise BadUpload(f"responded({response}) is `{first}`, expected amount and weight, neither below zero")
        if again != (first, first):
            raise BadUpload(f"responded({response}) gives another answer for the same response")


def check_host(found: type[Metric]) -> None:
    """Check that the meter does not have to switch the metric off."""
    meter = Meter([_create(found)])
    for number, method in enumerate(METHODS):
        handle = meter.begin("AUTH_trial", f"logs-{number}", "object")
        handle.admitted(method)
        sample = handle.sample()
        for data in _UPLOADS:
            handle.received(method, len(data))
            handle.sent(method, len(data))
            if sample is not None and sample.add(data):
                sample.end()
                sample = None
        handle.ended(method)
        handle.responded(Response(method, 200), 0.1)
    if meter.failures:
        raise BadUpload(f"its host would switch it off: {', '.join(sorted(meter.failures))}")
