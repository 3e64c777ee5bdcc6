"""Names on pages for words of the API: of policies, of bandwidth, and of metrics and nodes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from django.utils.translation import gettext_lazy as _

#: State of a policy → its name.
POLICY_STATES: Final[Mapping[str, Any]] = {
    "active": _("active"),
    "waiting": _("waiting"),
    "failed": _("failed"),
    "disabled": _("disabled"),
}
#: Action of an actor → its name.
FIRINGS: Final[Mapping[str, Any]] = {
    "set": _("set"),
    "changed": _("changed"),
    "taken_back": _("taken back"),
}
#: Subject of an explanation → its name; actions are numbered.
ABOUT: Final[Mapping[str, Any]] = {
    "target": _("Applies to"),
    "kind": _("Kind"),
    "fires": _("When"),
    "order": _("Order"),
}
#: Reason why an action has no effect beside another one → the same in words.
REASONS: Final[Mapping[str, Any]] = {
    "newer": _("the newer of two policies for the same target wins"),
    "deleted": _("a DELETE names it"),
    "narrower": _("the policy about the narrower target wins"),
}
#: Effect of a rollback on a policy.
HOWS: Final[Mapping[str, Any]] = {
    "create": _("comes back"),
    "replace": _("becomes what it was before"),
    "delete": _("is deleted"),
}
#: Method → its name, for headings; and the same within a sentence.
METHODS: Final[Mapping[str, Any]] = {
    "GET": _("Downloads (GET)"),
    "PUT": _("Uploads (PUT)"),
    "REPLICATION": _("Replication"),
}
MOVES: Final[Mapping[str, Any]] = {
    "GET": _("downloads"),
    "PUT": _("uploads"),
    "REPLICATION": _("replication"),
}
#: Objective → its name.
OBJECTIVES: Final[Mapping[str, Any]] = {
    "get_bw": _("Downloads, at least (get_bw)"),
    "put_bw": _("Uploads, at least (put_bw)"),
    "max_get_bw": _("Downloads, at most (max_get_bw)"),
    "max_put_bw": _("Uploads, at most (max_put_bw)"),
}
#: Objective that is a floor → its method.
FLOORS: Final[Mapping[str, str]] = {"get_bw": "GET", "put_bw": "PUT"}
#: Side of a node → its name.
SIDES: Final[Mapping[str, Any]] = {"proxy": _("proxy"), "storage_node": _("storage node")}
#: Source of a capacity → the same in words.
SOURCES: Final[Mapping[str, Any]] = {
    "configured": _("configured"),
    "estimated": _("estimated"),
    "unknown": _("not known"),
}
#: Part of a metric's name → the name of the line in a tenant's plot.
QUANTITIES: Final[Mapping[str, Any]] = {
    "MEASURED": _("measured"),
    "SHARE": _("share"),
    "FLOOR": _("floor"),
    "CEILING": _("ceiling"),
}
#: Metric of nodes → its name.
NODE_METRICS: Final[Mapping[str, Any]] = {
    "NODE_CPU": _("Processors: time at work"),
    "NODE_MEMORY": _("Memory in use"),
    "NODE_DISK_BUSY": _("Busiest disk: time at work"),
    "NODE_DISK_READ": _("Read from disks"),
    "NODE_DISK_WRITE": _("Written to disks"),
    "NODE_NET_IN": _("Received from the network"),
    "NODE_NET_OUT": _("Sent to the network"),
}
#: Metric of tenants and containers → its name.
LOADS: Final[Mapping[str, Any]] = {
    "GETS_SEC": _("Downloads per second"),
    "PUTS_SEC": _("Uploads per second"),
    "GET_BW": _("Downloaded bytes"),
    "PUT_BW": _("Uploaded bytes"),
    "THROUGHPUT": _("Downloaded and uploaded bytes"),
    "ACTIVE_REQUESTS": _("Requests at work"),
    "ERRORS": _("Share of errors"),
    "RESPONSE_TIME": _("Response time, median"),
    "RESPONSE_TIME_P95": _("Response time, 95 %"),
    "RESPONSE_TIME_P99": _("Response time, 99 %"),
    "HIT_RATIO": _("Hits of the cache"),
    "STORED": _("Stored bytes"),
    "OBJECTS": _("Objects"),
}
#: State of a node → its name.
NODE_STATES: Final[Mapping[str, Any]] = {
    "ok": _("well"),
    "stale_history": _("has an older history"),
    "failed": _("failed"),
    "away": _("does not report"),
}


def name_of(names: Mapping[str, Any], word: str) -> str:
    """The name of ``word``; a word of a newer API is shown as it is."""
    return str(names.get(word, word))


def owner_name(row: Mapping[str, Any]) -> str:
    """The owner of a flow or objective: the tenant's name, if the API has one, and the container."""
    return "/".join(filter(None, (row["label"] or row["account"], row.get("container"))))


def metric_choices(metrics: Iterable[Mapping[str, Any]], levels: frozenset[str]) -> list[tuple[str, str]]:
    """Name and title of the metrics at one of ``levels``; metrics with a name in this module come first.

    :param metrics: as in the API's registry
    """
    known = {**NODE_METRICS, **LOADS}
    names = [one["name"] for one in metrics if levels & set(one["granularities"])]
    order = {name: place for place, name in enumerate(known)}
    return [(name, str(known.get(name, name))) for name in sorted(names, key=lambda name: (order.get(name, 99), name))]


def metric_title(name: str) -> str:
    """The title of a metric; a registered metric has its own name."""
    return str(NODE_METRICS.get(name) or LOADS.get(name, name))
