"""Uploaded workload metrics: their description in the registration, and their class from verified code.

A trial (``sluice_metrics.trial``) writes the description into ``Upload.info``: the fields of ``MetricInfo`` other than
its name, and :data:`_KINDS` of the class.
"""

from __future__ import annotations

from dataclasses import fields
from typing import Any, Final

from sluice_code.code_store import BadUpload
from sluice_code.loader import load_class, refuse_failures
from sluice_core.describe import MetricInfo
from sluice_core.messages.policies import CLUSTER, OBJECT
from sluice_core.messages.uploads import Upload
from sluice_metrics.api import WITH_OBJECTS, Metric

UNITS: Final = ("count", "per_second", "bytes", "bytes_per_second", "seconds", "fraction", "ratio")
#: Seconds; nodes publish the counts of workers each second.
_PERIOD: Final = 1.0
#: Greatest sample of an upload, in bytes.
_MOST_SAMPLED: Final = 1 << 20
_TOLD: Final = tuple(one.name for one in fields(MetricInfo) if one.name != "name")
#: The attributes that make a metric something other than a total; each metric has at most one.
_KINDS: Final = ("gauge", "sample_size", "mean", "quantile")
_NEEDS_EACH_OTHER: Final = "the method `responded` needs `mean` or a `quantile`, and each of these needs it"
_LISTS: Final = ("granularities", "aliases")


def describe_metric(metric_class: type[Metric]) -> dict[str, Any]:
    """The description of a metric for ``Upload.info``: JSON data."""
    said = {name: getattr(metric_class.info, name) for name in _TOLD}
    lists = {name: list(said[name]) for name in _LISTS}
    return {**said, **lists, **{name: getattr(metric_class, name) for name in _KINDS}}


def metric_info(upload: Upload) -> MetricInfo:
    """Return the description of an uploaded metric.

    :raises BadUpload: when the stored description is not that of a metric
    """
    values: dict[str, Any] = {name: upload.info[name] for name in _TOLD if name in upload.info}
    try:
        values |= {name: tuple(values[name]) for name in _LISTS if name in values}
        return MetricInfo(upload.keyword, **values)
    except (TypeError, ValueError) as error:
        raise BadUpload(f"description of metric `{upload.keyword}`: {error}") from error


def load_metric(upload: Upload, code: bytes) -> type[Metric]:
    """Return the metric class in ``code`` (verified).

    :raises BadUpload: when it cannot be loaded, or is not what was registered
    """
    metric_class: type[Metric] = load_class(code, upload.sha256, Metric, upload.main)
    fault = refusal_reason(metric_class, upload.keyword)
    if fault:
        raise BadUpload(fault)
    return metric_class


def create_metric(upload: Upload, code: bytes) -> Metric:
    """Return a metric for the host's meter.

    :raises BadUpload: when its constructor fails
    """
    found = load_metric(upload, code)
    with refuse_failures(f"metric `{upload.keyword}` cannot be made"):
        return found()


def refusal_reason(metric_class: type[Metric], name: str = "") -> str:
    """Return why a class cannot be the metric ``name``, by its description; empty when it can."""
    info = getattr(metric_class, "info", None)
    if not isinstance(info, MetricInfo):
        return f"class `{metric_class.__name__}` has no `info` that is a MetricInfo"
    if name and info.name != name:
        return f"the code calls itself `{info.name}`, expected `{name}`"
    if not isinstance(metric_class.sample_size, int) or not 0 <= metric_class.sample_size <= _MOST_SAMPLED:
        return f"sample_size `{metric_class.sample_size}`, expected 0 to {_MOST_SAMPLED}"
    levels, known = set(info.granularities), ", ".join(WITH_OBJECTS)
    kinds = [name for name in _KINDS if getattr(metric_class, name)]
    over_responses = bool(metric_class.mean or metric_class.quantile)
    rules = (
        (_is_name(info.name), f"name `{info.name}`, expected upper case letters, digits and `_`"),
        (info.unit in UNITS, f"unit `{info.unit}`, expected one of {', '.join(UNITS)}"),
        (bool(info.help), "it has no `help`"),
        (bool(levels) and levels <= set(WITH_OBJECTS), f"granularities {levels}, expected some of {known}"),
        (info.period == _PERIOD, f"period `{info.period}`, expected {_PERIOD:g}: nodes publish each second"),
        (isinstance(metric_class.gauge, bool), f"gauge `{metric_class.gauge}`, expected True or False"),
        (isinstance(metric_class.mean, bool), f"mean `{metric_class.mean}`, expected True or False"),
        (
            _is_quantile(metric_class.quantile),
            f"quantile `{metric_class.quantile}`, expected a number below 1, or 0 for none",
        ),
        (len(kinds) < 2, f"it has {' and '.join(f'`{name}`' for name in kinds)}, expected one of them at most"),
        (not (OBJECT in levels and kinds), "only totals are counted for single objects"),
        (over_responses == (metric_class.responded is not Metric.responded), _NEEDS_EACH_OTHER),
        (
            not metric_class.quantile or info.unit == "seconds",
            f"unit `{info.unit}`, expected seconds for a quantile of them",
        ),
        (not (metric_class.sample_size and CLUSTER in levels), "means over samples are not added up to the cluster"),
    )
    return "; ".join(fault for holds, fault in rules if not holds)


def _is_quantile(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < 1


def _is_name(text: object) -> bool:
    return isinstance(text, str) and text.replace("_", "").isalnum() and text == text.upper()
