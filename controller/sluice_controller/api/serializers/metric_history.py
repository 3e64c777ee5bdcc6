"""The shapes of the history of metrics."""

from __future__ import annotations

from typing import Any, Final

from rest_framework import serializers as s

from sluice_controller.api.serializers.base import Serializer, UnixTimeField, computed, page_of
from sluice_controller.metric_history.reading import History
from sluice_controller.validation.times import iso_time
from sluice_metric_history.resolutions import Point

_TARGET: Final = "account, account/container, account/volume id, node, node/side, node/device, pool …; empty: cluster"
#: Points are floats of 32 bits, which have no more digits.
_DIGITS: Final = 7
Row = list[float | None]


def rows_of(history: History) -> list[Row]:
    """A row of each step: unix time at which it begins, mean, lowest, highest, 95th percentile."""
    times = range(history.span.begin, history.span.end, history.span.step)
    return [[at, *_numbers(point)] for at, point in zip(times, history.points, strict=True)]


def _numbers(point: Point | None) -> Row:
    return [None] * 4 if point is None else [None if one is None else float(f"{one:.{_DIGITS}g}") for one in point]


class _HistoryBase(Serializer):
    """A metric of a target over time."""

    metric = s.CharField(source="selection.metric.name")
    unit = s.CharField(source="selection.metric.unit")
    level = s.CharField(help_text="tenant, container, volume, node, device, part, pool, storage_policy or cluster")
    target = s.CharField(source="selection.target", allow_blank=True, help_text=_TARGET)
    rest = computed(
        lambda history: history.selection.series[0].rest,
        s.BooleanField(help_text="the sum of all targets of the level that have no series of their own"),
    )
    of = s.IntegerField(help_text="of how many targets the sum of a rest was last")
    step = s.IntegerField(source="span.step", help_text="seconds; more than asked for where that is kept no finer")


#: ``from`` is no name in Python.
MetricHistorySerializer: Final[Any] = type(
    "MetricHistorySerializer",
    (_HistoryBase,),
    {
        "__doc__": _HistoryBase.__doc__,
        "from": computed(lambda history: iso_time(history.span.begin), s.DateTimeField()),
        "to": computed(lambda history: iso_time(history.span.end), s.DateTimeField(help_text="end of the last step")),
        "points": computed(
            rows_of,
            s.ListField(
                child=s.ListField(child=s.FloatField(allow_null=True)),
                help_text="for each step the unix time at which it begins, and mean, lowest, highest value and 95th "
                "percentile; null where nothing was measured, and for a percentile that is not known",
            ),
        ),
    },
)


class MetricSeriesSerializer(Serializer):
    """A series that is kept."""

    metric = s.CharField()
    level = s.CharField()
    target = s.CharField(source="path", allow_blank=True, help_text=_TARGET)
    label = s.CharField(allow_blank=True, help_text="the same with the name of the project; empty where it has none")
    rest = s.BooleanField(help_text="the sum of all targets of the level that have no series of their own")
    of = s.IntegerField(help_text="of how many targets the sum of a rest was last")
    step = s.IntegerField(help_text="seconds of its finest points")
    since = UnixTimeField()


MetricSeriesPageSerializer: Final = page_of("series", MetricSeriesSerializer, "Series by metric, level and target.")


class ForgottenSerializer(Serializer):
    """What was forgotten."""

    series = s.IntegerField(help_text="how many")
