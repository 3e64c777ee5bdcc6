"""``python -I -m sluice_metrics.trial``: holds an uploaded metric against the contract of ``sluice_metrics.api``.

It runs in a child (``sluice_core.code.sandbox_trial``), with Swift's interpreter on nodes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import isfinite
from operator import methodcaller
from typing import Final

from sluice_core.code.code_store import BadUpload
from sluice_core.code.loader import load_class
from sluice_core.code.sandbox_trial import Trial, Verdict, serve_trial
from sluice_metrics.api import Metric
from sluice_metrics.meter.meter import Meter
from sluice_metrics.native import describe_metric, refusal_reason

METHODS: Final = ("GET", "PUT", "HEAD", "POST", "DELETE", "COPY", "OPTIONS", "WHATEVER")
_SIZES: Final = (0, 1, 512, 65_536, 5 << 30)
_UPLOADS: Final = (b"x", bytes(1024), b"some words, again and again " * 3000, bytes(range(256)) * 256)


def judge(trial: Trial, code: bytes) -> Verdict:
    """
    :raises BadUpload: when the code is unfit
    """
    found: type[Metric] = load_class(code, trial.sha256, Metric, trial.main)
    try:
        fault = refusal_reason(found, trial.keyword)
        info = {} if fault else describe_metric(found)
    except Exception as error:
        raise BadUpload(f"what it says of itself: {type(error).__name__}: {error}") from error
    if fault:
        raise BadUpload(fault)
    try:
        _hold(found)
    except BadUpload as error:
        raise BadUpload(f"metric `{found.info.name}`: {error}") from error
    return Verdict("", found.__name__, info)


def _hold(found: type[Metric]) -> None:
    """Hold its answers against the contract."""
    one, other = _made(found), _made(found)
    for name, ask in _questions():
        _answers(found, name, one, other, ask)
    if found.gauge:
        _comes_down(one)
    if found.sample_size:
        _samples(found.sample_size, one, other)
    _host(found)


def _made(found: type[Metric]) -> Metric:
    try:
        return found()
    except Exception as error:
        raise BadUpload(f"it cannot be made: {type(error).__name__}: {error}") from error


def _questions() -> Iterator[tuple[str, Callable[[Metric], float]]]:
    for method in METHODS:
        for event in ("admitted", "ended"):
            yield f"{event}(`{method}`)", methodcaller(event, method)
        for size in _SIZES:
            for event in ("received", "sent"):
                yield f"{event}(`{method}`, {size})", methodcaller(event, method, size)


def _answers(found: type[Metric], name: str, one: Metric, other: Metric, ask: Callable[[Metric], float]) -> None:
    try:
        answer = ask(one)
        again = (ask(one), ask(other))
        number = isinstance(answer, int | float) and isfinite(answer)
    except Exception as error:
        raise BadUpload(f"{name} fails: {type(error).__name__}: {error}") from error
    if not number:
        raise BadUpload(f"{name} is `{answer!r}`, expected a finite number")
    if again != (answer, answer):
        raise BadUpload(f"{name} is `{answer}` and then `{again[0]}`, expected what depends on the arguments only")
    if answer < 0 and not found.gauge:
        raise BadUpload(f"{name} is `{answer}`, expected a total that never shrinks")


def _comes_down(one: Metric) -> None:
    for method in METHODS:
        up, down = one.admitted(method), one.ended(method)
        if up < 0 or up + down != 0:
            raise BadUpload(f"a `{method}` takes the level up by `{up}` and down by `{-down}`, expected the same")


def _samples(size: int, one: Metric, other: Metric) -> None:
    for data in (upload[:size] for upload in _UPLOADS):
        try:
            amount, weight = first = one.sampled(data)
            again = (one.sampled(data), other.sampled(data))
            fine = isfinite(amount) and isfinite(weight) and amount >= 0 and weight > 0
        except Exception as error:
            raise BadUpload(f"sampled() of {len(data)} bytes fails: {type(error).__name__}: {error}") from error
        if not fine:
            raise BadUpload(f"sampled() of {len(data)} bytes is `{first}`, expected an amount and a weight above zero")
        if again != (first, first):
            raise BadUpload("sampled() gives another answer for the same bytes")


def _host(found: type[Metric]) -> None:
    """The host must never have to switch it off."""
    meter = Meter([_made(found)])
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
    if meter.failures:
        raise BadUpload(f"its host would switch it off: {', '.join(sorted(meter.failures))}")


if __name__ == "__main__":
    serve_trial(judge)
