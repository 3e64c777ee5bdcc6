"""What words of the API are called on pages: those of policies, of bandwidth, and of metrics and nodes."""

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
#: What an actor did → its name.
FIRINGS: Final[Mapping[str, Any]] = {
    "set": _("set"),
    "changed": _("changed"),
    "taken_back": _("taken back"),
}
#: What an explanation is about → its name; actions are numbered.
ABOUT: Final[Mapping[str, Any]] = {
    "target": _("Applies to"),
    "kind": _("Kind"),
    "fires": _("When"),
    "order": _("Order"),
}
#: Why an action does not hold beside another one → the same in words.
REASONS: Final[Mapping[str, Any]] = {
    "newer": _("the newer of two policies for the same target wins"),
    "deleted": _("a DELETE names it"),
    "narrower": _("the policy about the narrower target wins"),
}
#: What becomes of a policy when a change is undone.
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
#: Objective that is a floor → the method that it is about.
FLOORS: Final[Mapping[str, str]] = {"get_bw": "GET", "put_bw": "PUT"}
#: Side of a node → its name.
SIDES: Final[Mapping[str, Any]] = {"proxy": _("proxy"), "storage_node": _("storage node")}
#: How a capacity is known → the same in words.
SOURCES: Final[Mapping[str, Any]] = {
    "configured": _("configured"),
    "estimated": _("estimated"),
    "unknown": _("not known"),
}
#: What is drawn of a tenant: part of a metric's name → its name.
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
    """Whose a flow or objective is: the tenant's name, where the API knows one, and the container."""
    return "/".join(filter(None, (row["label"] or row["account"], row.get("container"))))


def metric_choices(metrics: Iterable[Mapping[str, Any]], levels: frozenset[str]) -> list[tuple[str, str]]:
    """Name and title of the metrics that exist at one of ``levels``; first those that have a name here.

    :param metrics: as the API's registry has them
    """
    known = {**NODE_METRICS, **LOADS}
    names = [one["name"] for one in metrics if levels & set(one["granularities"])]
    order = {name: place for place, name in enumerate(known)}
    return [(name, str(known.get(name, name))) for name in sorted(names, key=lambda name: (order.get(name, 99), name))]


def metric_title(name: str) -> str:
    """What a metric is called; one of others has its own name."""
    return str(NODE_METRICS.get(name) or LOADS.get(name, name))
