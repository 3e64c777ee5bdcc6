"""``/bw/flows``, ``/nodes``, ``/parts``, ``/devices`` and ``/metrics``: measured rates, beside the allowed ones."""

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
_CONTAINER: Final = query_text("container", "only of this container, if it is counted by itself")
_STORAGE_POLICY: Final = query_text("storage_policy", "only under this storage policy, by its name or index")
_METHOD: Final = query_word("method", "only by this method", METHODS)
_NODE: Final = query_text("node", "only on this node")
_SIDE: Final = query_word("side", "only on this side of nodes", SIDES)
_DEVICE: Final = query_text("device", "only on this device")
_SHORT: Final = query_flag("short", "only those whose floor cannot be met")


_OF_PARTS: Final = (_ACCOUNT, _CONTAINER, _METHOD, _STORAGE_POLICY, _NODE, _SIDE, _DEVICE)


def _list(name: str, rule: Rule, page: Any, *filters: OpenApiParameter) -> Declare:
    """Declares the list ``name``."""
    description = "The state of the last second; pages of one list may be of different seconds."
    return operation(f"GET /bw/{name}", rule, page, *filters, *LIST, description=description)


def read_filters(view: View) -> dict[str, str]:
    """The filters in the query for parts, flows, nodes or devices; empty for those that are not given."""
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
        "list the shares and rates of tenants",
        everybody="list the shares and rates of all tenants",
    ),
    shapes.FlowPageSerializer,
    _ACCOUNT,
    _CONTAINER,
    _METHOD,
    _STORAGE_POLICY,
    _SHORT,
)
def list_bandwidth_flows(view: View, request: Request) -> Response:
    """List the objectives, shares and rates of tenants and containers.

    Those of the caller's project, or of all projects with the rule for that.
    """
    report = nodes.current_report(view.backend, idle=True)
    table = report_tables.flows(report, visible_accounts(request, view.rule), **read_filters(view))
    if view.given["short"]:
        table = replace(table, rows={key: one for key, one in table.rows.items() if one["short"] > 0})
    return render_report(view, "flows", table)


@_list(
    "nodes",
    Rule("sluice:bandwidth:nodes", ADMIN, "list the capacities and rates of nodes"),
    shapes.NodeBandwidthPageSerializer,
    _NODE,
    _SIDE,
    _METHOD,
)
def list_bandwidth_nodes(view: View, request: Request) -> Response:
    """List the capacities, shares and rates of nodes."""
    report = nodes.current_report(view.backend)
    return render_report(view, "nodes", report_tables.nodes(report, **read_filters(view)))


@_list(
    "parts",
    Rule("sluice:bandwidth:parts", ADMIN, "list the rates of tenants by node and device"),
    shapes.PartPageSerializer,
    *_OF_PARTS,
)
def list_bandwidth_parts(view: View, request: Request) -> Response:
    """List the rates of flows by node and device."""
    report = nodes.current_report(view.backend)
    return render_report(view, "parts", report_tables.parts(report, **read_filters(view)))


@_list(
    "devices",
    Rule("sluice:bandwidth:devices", ADMIN, "list the rates of devices"),
    shapes.DeviceBandwidthPageSerializer,
    _NODE,
    _DEVICE,
    _METHOD,
)
def list_bandwidth_devices(view: View, request: Request) -> Response:
    """List the rates of devices."""
    report = nodes.current_report(view.backend)
    return render_report(view, "devices", report_tables.devices(report, **read_filters(view)))


@operation(
    "GET /bw/metrics",
    Rule("sluice:bandwidth:metrics", ADMIN, "export the shares and rates of tenants to Prometheus"),
    {(200, TEXT): OpenApiTypes.STR},
    *_OF_PARTS,
)
def bandwidth_metrics(view: TextView, request: Request) -> Response:
    """Export shares and rates of tenants, also by node and device, in Prometheus' text format.

    The rows of `/bw/flows` and `/bw/parts` as gauges. With `node`, `side` or `device` the answer has parts
    alone, since flows are of the whole cluster.
    """
    return Response(bandwidth.exposition(view.backend, **view.given), content_type=CONTENT_TYPE)
