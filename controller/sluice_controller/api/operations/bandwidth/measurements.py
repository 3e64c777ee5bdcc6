"""``/bw/flows``, ``/nodes``, ``/parts``, ``/devices`` and ``/metrics``: what moves now, beside what may."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter
from rest_framework.request import Request
from rest_framework.response import Response

from sluice_controller.api.openapi import LIST, operation, query_flag, query_text, query_word
from sluice_controller.api.permissions import visible_accounts
from sluice_controller.api.prometheus import bandwidth
from sluice_controller.api.prometheus.cluster import CONTENT_TYPE
from sluice_controller.api.renderers import TEXT, TextView
from sluice_controller.api.resources import Declare, render_page
from sluice_controller.api.serializers import bandwidth as shapes
from sluice_controller.api.view import View
from sluice_controller.bandwidth import report_tables
from sluice_controller.bandwidth.report_tables import ReportTable
from sluice_controller.catalog import nodes
from sluice_controller.identity.rules import ADMIN, READS_OWN, Rule
from sluice_core.messages.bandwidth import METHODS, SIDES

_ACCOUNT: Final = query_text("account", "only of this account")
_CONTAINER: Final = query_text("container", "only of this container, where it is counted by itself")
_STORAGE_POLICY: Final = query_text("storage_policy", "only under this one, by its name or index")
_METHOD: Final = query_word("method", "only by this method", METHODS)
_NODE: Final = query_text("node", "only on this node")
_SIDE: Final = query_word("side", "only on this side of nodes", SIDES)
_DEVICE: Final = query_text("device", "only on this device")
_SHORT: Final = query_flag("short", "only those whose floor cannot be met")


_OF_PARTS: Final = (_ACCOUNT, _CONTAINER, _METHOD, _STORAGE_POLICY, _NODE, _SIDE, _DEVICE)


def _list(name: str, rule: Rule, page: Any, *filters: OpenApiParameter) -> Declare:
    """Declares the list ``name``."""
    description = "As it was in the last second; pages of one list may be of different seconds."
    return operation(f"GET /bw/{name}", rule, page, *filters, *LIST, description=description)


def read_filters(view: View) -> dict[str, str]:
    """What the query says of parts, flows, nodes or devices; empty for what it does not say."""
    return {one.name: view.given[one.name] for one in _OF_PARTS if one.name in view.given}


def render_report(view: View, name: str, table: ReportTable) -> Response:
    """A page of ``table``."""

    def render(row: dict[str, Any]) -> dict[str, Any]:
        return {**row, "label": view.backend.label(row["account"])} if "account" in row else row

    return render_page(view.given, name, table.rows, render, **table.metadata())


@_list(
    "flows",
    Rule(
        "sluice:bandwidth:flows",
        READS_OWN,
        "list what tenants get and move",
        everybody="list what all tenants get and move",
    ),
    shapes.FlowPageSerializer,
    _ACCOUNT,
    _CONTAINER,
    _METHOD,
    _STORAGE_POLICY,
    _SHORT,
)
def list_bandwidth_flows(view: View, request: Request) -> Response:
    """List what tenants and containers are promised, get and move.

    Those of one's own project unless one may see all.
    """
    report = nodes.current_report(view.backend, idle=True)
    table = report_tables.flows(report, visible_accounts(request, view.rule), **read_filters(view))
    if view.given["short"]:
        table = replace(table, rows={key: one for key, one in table.rows.items() if one["short"] > 0})
    return render_report(view, "flows", table)


@_list(
    "nodes",
    Rule("sluice:bandwidth:nodes", ADMIN, "list what nodes can and do move"),
    shapes.NodeBandwidthPageSerializer,
    _NODE,
    _SIDE,
    _METHOD,
)
def list_bandwidth_nodes(view: View, request: Request) -> Response:
    """List what nodes can move, are given and move."""
    report = nodes.current_report(view.backend)
    return render_report(view, "nodes", report_tables.nodes(report, **read_filters(view)))


@_list(
    "parts",
    Rule("sluice:bandwidth:parts", ADMIN, "list where tenants move what"),
    shapes.PartPageSerializer,
    *_OF_PARTS,
)
def list_bandwidth_parts(view: View, request: Request) -> Response:
    """List on which nodes and devices flows move how much."""
    report = nodes.current_report(view.backend)
    return render_report(view, "parts", report_tables.parts(report, **read_filters(view)))


@_list(
    "devices",
    Rule("sluice:bandwidth:devices", ADMIN, "list what devices move"),
    shapes.DeviceBandwidthPageSerializer,
    _NODE,
    _DEVICE,
    _METHOD,
)
def list_bandwidth_devices(view: View, request: Request) -> Response:
    """List what devices move."""
    report = nodes.current_report(view.backend)
    return render_report(view, "devices", report_tables.devices(report, **read_filters(view)))


@operation(
    "GET /bw/metrics",
    Rule("sluice:bandwidth:metrics", ADMIN, "give Prometheus what tenants get and move, and where"),
    {(200, TEXT): OpenApiTypes.STR},
    *_OF_PARTS,
)
def bandwidth_metrics(view: TextView, request: Request) -> Response:
    """Give what tenants get and move, by node and device too, in Prometheus' text format.

    The rows of `/bw/flows` and `/bw/parts` as gauges. Where `node`, `side` or `device` is given there are
    parts alone, since flows are of the whole cluster.
    """
    return Response(bandwidth.exposition(view.backend, **view.given), content_type=CONTENT_TYPE)
