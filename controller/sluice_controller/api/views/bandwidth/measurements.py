"""``/bw/flows``, ``/nodes``, ``/parts``, ``/devices`` and ``/metrics``: what moves now, beside what may."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter
from rest_framework.renderers import JSONRenderer
from rest_framework.request import Request
from rest_framework.response import Response

from sluice_controller.api.openapi import LIST, operation, query_flag, query_text, query_word
from sluice_controller.api.permissions import visible_accounts
from sluice_controller.api.prometheus import bandwidth
from sluice_controller.api.prometheus.cluster import CONTENT_TYPE
from sluice_controller.api.serializers import bandwidth as shapes
from sluice_controller.api.views.base import View
from sluice_controller.api.views.renderers import TEXT, NonJSONView, TextRenderer
from sluice_controller.api.views.resources import render_page
from sluice_controller.bandwidth import report_tables
from sluice_controller.bandwidth.report_tables import ReportTable
from sluice_controller.catalog import bandwidth_report
from sluice_core.messages.bandwidth import METHODS, SIDES

_ACCOUNT: Final = query_text("account", "only of this account")
_CONTAINER: Final = query_text("container", "only of this container, where it is counted by itself")
_STORAGE_POLICY: Final = query_text("storage_policy", "only under this one, by its name or index")
_METHOD: Final = query_word("method", "only by this method", METHODS)
_NODE: Final = query_text("node", "only on this node")
_SIDE: Final = query_word("side", "only on this side of nodes", SIDES)
_DEVICE: Final = query_text("device", "only on this device")
_SHORT: Final = query_flag("short", "only those whose floor cannot be met")


class MeasuredView(View):
    """A list out of the last report."""

    #: what a list can be narrowed by
    filters: tuple[OpenApiParameter, ...] = ()

    def wanted(self) -> dict[str, str]:
        """What the query says of :attr:`filters`; empty for what it does not say."""
        return {one.name: self.given[one.name] for one in self.filters}

    def listed(self, name: str, table: ReportTable) -> Response:
        """A page of ``table``."""
        return render_page(self.given, name, table.rows, self._row, **table.metadata())

    def _row(self, row: dict[str, Any]) -> dict[str, Any]:
        return {**row, "label": self.backend.label(row["account"])} if "account" in row else row


def _list(name: str, page: Any, *filters: OpenApiParameter) -> Any:
    """Declares the list ``name``."""
    description = "As it was in the last second; pages of one list may be of different seconds."
    rule, parameters = f"sluice:bandwidth:{name}", [*filters, *LIST]
    return operation(rule, f"list_bandwidth_{name}", page, *parameters, description=description)


class FlowsView(MeasuredView):
    """Tenants and containers."""

    filters = (_ACCOUNT, _CONTAINER, _METHOD, _STORAGE_POLICY)

    @_list("flows", shapes.FlowPageSerializer, *filters, _SHORT)
    def get(self, request: Request) -> Response:
        """List what tenants and containers are promised, get and move.

        Those of one's own project unless one may see all.
        """
        report = bandwidth_report.current_report(self.backend, idle=True)
        table = report_tables.flows(report, visible_accounts(request, self.rules["get"]), **self.wanted())
        if self.given["short"]:
            table = replace(table, rows={key: one for key, one in table.rows.items() if one["short"] > 0})
        return self.listed("flows", table)


class NodeBandwidthView(MeasuredView):
    """Proxies and storage nodes."""

    filters = (_NODE, _SIDE, _METHOD)

    @_list("nodes", shapes.NodeBandwidthPageSerializer, *filters)
    def get(self, request: Request) -> Response:
        """List what nodes can move, are given and move."""
        report = bandwidth_report.current_report(self.backend)
        return self.listed("nodes", report_tables.nodes(report, **self.wanted()))


class PartsView(MeasuredView):
    """Where flows move."""

    filters = (_ACCOUNT, _CONTAINER, _METHOD, _STORAGE_POLICY, _NODE, _SIDE, _DEVICE)

    @_list("parts", shapes.PartPageSerializer, *filters)
    def get(self, request: Request) -> Response:
        """List on which nodes and devices flows move how much."""
        report = bandwidth_report.current_report(self.backend)
        return self.listed("parts", report_tables.parts(report, **self.wanted()))


class DevicesView(MeasuredView):
    """Disks."""

    filters = (_NODE, _DEVICE, _METHOD)

    @_list("devices", shapes.DeviceBandwidthPageSerializer, *filters)
    def get(self, request: Request) -> Response:
        """List what devices move."""
        report = bandwidth_report.current_report(self.backend)
        return self.listed("devices", report_tables.devices(report, **self.wanted()))


class BandwidthMetricsView(NonJSONView):
    """The same for Prometheus."""

    renderer_classes = (TextRenderer, JSONRenderer)

    @operation("sluice:bandwidth:metrics", "bandwidth_metrics", {(200, TEXT): OpenApiTypes.STR}, *PartsView.filters)
    def get(self, request: Request) -> Response:
        """Give what tenants get and move, by node and device too, in Prometheus' text format.

        The rows of `/bw/flows` and `/bw/parts` as gauges. Where `node`, `side` or `device` is given there are
        parts alone, since flows are of the whole cluster.
        """
        return Response(bandwidth.exposition(self.backend, **self.given), content_type=CONTENT_TYPE)
