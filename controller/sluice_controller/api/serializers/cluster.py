"""The shapes of the state of the whole cluster.

Nodes, the newest change, the API's health, events, a caller's permissions, counts of policies, nodes and hosts by
state, and the history of metrics.
"""

from __future__ import annotations

from typing import Any, Final

from rest_framework import serializers as s

from sluice_controller.api.serializers.base import PageSerializer, Serializer, UnixTimeField, computed, page_of
from sluice_controller.catalog.policy_cache import STATES
from sluice_controller.metric_history.reading import History
from sluice_controller.validation.parameters import iso_time
from sluice_core.messages.events import KINDS, SEVERITIES
from sluice_core.messages.policies import policy_of_assignment
from sluice_metric_history.resolutions import Point

NODE_STATES = ("ok", "stale_history", "failed", "away")
HEALTH = ("ok", "degraded")


class LinkSerializer(Serializer):
    """A URL and its relation to the object that contains it."""

    rel = s.CharField(help_text="always `self`")
    href = s.CharField()


class VersionSerializer(Serializer):
    """One version of the API."""

    id = s.CharField()
    status = s.CharField(help_text="`CURRENT`")
    links = LinkSerializer(many=True)


class VersionsSerializer(Serializer):
    """The document for the discovery of the API by clients of OpenStack."""

    versions = VersionSerializer(many=True)


class NodeRefusalSerializer(Serializer):
    """An assignment that a node cannot enforce."""

    assignment = s.CharField()
    policy = s.CharField()
    reason = s.CharField()


class NodeSerializer(Serializer):
    """The last report of a node's agent."""

    node = s.CharField()
    state = s.ChoiceField(NODE_STATES)
    detail = s.CharField(allow_blank=True)
    history = s.CharField(allow_blank=True)
    epoch = s.IntegerField(help_text="the last change that it has applied")
    refused = computed(
        lambda node: [
            {"assignment": assignment, "policy": policy_of_assignment(assignment), "reason": reason}
            for assignment, reason in node.refused.items()
        ],
        NodeRefusalSerializer(many=True),
    )
    workers = s.IntegerField()
    assignments = s.IntegerField()
    dropped = s.IntegerField(help_text="metric batches that were lost")
    storage = s.CharField(
        allow_blank=True,
        help_text="`ready` when objects can be transformed on its disks, else the reason to wait; empty without disks",
    )
    code = s.DictField(
        child=s.IntegerField(),
        help_text="the revision of uploaded code that it can run: `<filter>`, `metric/<NAME>`",
    )
    sandbox = s.DictField(child=s.CharField(), help_text="isolated environment: `ok`, or its problem")
    plugins = s.DictField(child=s.CharField(), help_text="installed plugin that a Swift process runs without: why")
    software = s.CharField(allow_blank=True)
    started_at = UnixTimeField(source="started")
    reported_at = UnixTimeField(source="at")


class HeadSerializer(Serializer):
    """The newest change."""

    history = s.CharField(allow_blank=True)
    epoch = s.IntegerField()


class NodeListSerializer(Serializer):
    """All nodes that ever reported, except the forgotten ones."""

    nodes = NodeSerializer(many=True)
    next_marker = s.CharField(allow_null=True, help_text="`marker` of the next page; null on the last one")
    head = HeadSerializer()


class HealthSerializer(Serializer):
    """`degraded` if one of the dependencies is; `keystone` is one if it authenticates callers."""

    status = s.ChoiceField(HEALTH)
    dependencies = s.DictField(child=s.ChoiceField(HEALTH))


class PermissionsSerializer(Serializer):
    """The permissions of the caller."""

    permissions = s.DictField(
        child=s.BooleanField(),
        help_text="by rule, without the prefix `sluice:` (as `policies:create`), whether it allows the call",
    )


class EventSerializer(Serializer):
    """A problem, or the end of one."""

    id = s.CharField(help_text="its position in the log, for `since`")
    at = UnixTimeField(help_text="time of detection")
    severity = s.ChoiceField(SEVERITIES)
    kind = s.CharField(help_text=f"the kind of event: {', '.join(KINDS)}")
    node = s.CharField(allow_blank=True)
    policy = s.CharField(allow_blank=True)
    subject = s.CharField(allow_blank=True, help_text="a further object of the event: code, a plugin, an environment")
    text = s.CharField()
    source = s.CharField(help_text="the author of the event: a node, an actor host, `api` or `bandwidth`")
    fields = s.DictField(help_text="further values, by name")


class EventPageSerializer(PageSerializer):
    """A page of events, oldest first."""

    events = EventSerializer(many=True)
    last = s.CharField(help_text="`since` for a request of the events after this page")


def _count(state: str) -> Any:
    return computed(lambda counts: counts.states.get(state, 0), s.IntegerField())


class PolicyCountsSerializer(Serializer):
    """The numbers of policies, by state, and of those that a node refuses, in any state."""

    total = s.IntegerField()
    active, waiting, failed, disabled = map(_count, STATES)
    refused = s.IntegerField()


class FloorCountsSerializer(Serializer):
    """Floors of bandwidth that the cluster cannot carry now."""

    short = s.IntegerField(help_text="number of policies")
    shortfall = s.FloatField(help_text="bytes per second that are missing")
    stale = s.BooleanField(help_text="whether no host measures now: 0 then has no meaning")


class NodeCountsSerializer(Serializer):
    """The numbers of nodes, by state, and of those that refuse something, in any state."""

    total = s.IntegerField()
    ok, stale_history, failed, away = map(_count, NODE_STATES)
    refusing = s.IntegerField(source="refused")


class HostCountsSerializer(Serializer):
    """The numbers of actor hosts that have reported lately, and that have not."""

    alive = s.IntegerField()
    away = s.IntegerField()


class ClusterCountsSerializer(Serializer):
    """The state of the whole cluster, as opposed to that of tenants."""

    nodes = NodeCountsSerializer()
    hosts = HostCountsSerializer()
    dependencies = s.DictField(child=s.ChoiceField(HEALTH), help_text="as in `/health`")


class OverviewSerializer(Serializer):
    """Counts of policies, nodes and hosts by state."""

    policies = PolicyCountsSerializer()
    floors = FloorCountsSerializer()
    cluster = ClusterCountsSerializer(allow_null=True, help_text="null for callers that see their own policies alone")


_TARGET: Final = "account, account/container, account/volume id, node, node/side, node/device, pool …; empty: cluster"
#: Points are floats of 32 bits, which have at most this many digits.
_DIGITS: Final = 7
Row = list[float | None]


def rows_of(history: History) -> list[Row]:
    """A row for each step: Unix time at which it begins, mean, lowest, highest, 95th percentile."""
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
        s.BooleanField(help_text="whether it is the sum of all targets of the level without a series of their own"),
    )
    of = s.IntegerField(help_text="the number of targets in the last sum of a rest")
    step = s.IntegerField(source="span.step", help_text="seconds; more than requested if finer points are not kept")


#: ``from`` is not a valid name in Python.
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
                help_text="for each step the Unix time at which it begins, and mean, lowest, highest value and 95th "
                "percentile; null where nothing was measured, and for a percentile that is not known",
            ),
        ),
    },
)


class MetricSeriesSerializer(Serializer):
    """A series of the history."""

    metric = s.CharField()
    level = s.CharField()
    target = s.CharField(source="path", allow_blank=True, help_text=_TARGET)
    label = s.CharField(allow_blank=True, help_text="the target with the name of the project; empty if it has none")
    rest = s.BooleanField(help_text="whether it is the sum of all targets of the level without a series of their own")
    of = s.IntegerField(help_text="the number of targets in the last sum of a rest")
    step = s.IntegerField(help_text="seconds of its finest points")
    since = UnixTimeField()


MetricSeriesPageSerializer: Final = page_of("series", MetricSeriesSerializer, "Series by metric, level and target.")


class ForgottenSerializer(Serializer):
    """The result of deleting history."""

    series = s.IntegerField(help_text="how many")
