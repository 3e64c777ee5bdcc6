"""``/bw/flows``, ``/nodes``, ``/parts``, ``/devices`` and ``/metrics``: what moves now, beside what may."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any, Final

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter
from rest_framework.renderers import JSONRenderer
from rest_framework.request import Request
from rest_framework.response import Response

from sluice_controller.api import prometheus_bandwidth
from sluice_controller.api.openapi import LIST, operation, query
from sluice_controller.api.permissions import visible_accounts
from sluice_controller.api.prometheus import CONTENT_TYPE
from sluice_controller.api.serializers import bandwidth as shapes
from sluice_controller.api.views.base import View
from sluice_controller.api.views.renderers import TEXT, NonJSONView, TextRenderer
from sluice_controller.api.views.resources import render_page
from sluice_controller.bandwidth import report_tables
from sluice_controller.bandwidth.report_tables import ReportTable
from sluice_controller.catalog import bandwidth_report
from sluice_controller.validation.parameters import Query
from sluice_core.messages.bandwidth import METHODS, SIDES

_ACCOUNT: Final = query("account", OpenApiTypes.STR, "only of this account")
_CONTAINER: Final = query("container", OpenApiTypes.STR, "only of this container, where it is counted by itself")
_STORAGE_POLICY: Final = query("storage_policy", OpenApiTypes.STR, "only under this one, by its name or index")
_METHOD: Final = query("method", OpenApiTypes.STR, "only by this method", enum=METHODS)
_NODE: Final = query("node", OpenApiTypes.STR, "only on this node")
_SIDE: Final = query("side", OpenApiTypes.STR, "only on this side of nodes", enum=SIDES)
_DEVICE: Final = query("device", OpenApiTypes.STR, "only on this device")
_CHOICES: Final = {"method": METHODS, "side": SIDES}


def chosen(given: Query, filters: Iterable[OpenApiParameter]) -> dict[str, str]:
    """What the query says of ``filters``; empty for what it does not say."""
    names = [one.name for one in filters]
    return {name: given.one_of(name, _CHOICES[name]) if name in _CHOICES else given.text(name) for name in names}


class MeasuredView(View):
    """A list out of the last report."""

    #: what a list can be narrowed by
    filters: tuple[OpenApiParameter, ...] = ()

    def wanted(self, request: Request, *more: str) -> tuple[Query, dict[str, str]]:
        """The query, and what it says of :attr:`filters`; empty for what it does not say."""
        names = [one.name for one in self.filters]
        given = self.query(request, "limit", "marker", "prefix", *names, *more)
        return given, chosen(given, self.filters)

    def listed(self, request: Request, name: str, table: ReportTable, *more: str) -> Response:
        """A page of ``table``."""
        names = [one.name for one in self.filters]
        return render_page(self, request, name, table.rows, lambda one: one, *names, *more, **table.metadata())


def _list(name: str, page: Any, *filters: OpenApiParameter) -> Any:
    """Declares the list ``name``."""
    description = "As it was in the last second; pages of one list may be of different seconds."
    rule, parameters = f"sluice:bandwidth:{name}", [*filters, *LIST]
    return operation(rule, f"list_bandwidth_{name}", page, *parameters, description=description)


class FlowsView(MeasuredView):
    """Tenants and containers."""

    filters = (_ACCOUNT, _CONTAINER, _METHOD, _STORAGE_POLICY)

    @_list(
        "flows",
        shapes.FlowPageSerializer,
        *filters,
        query("short", OpenApiTypes.BOOL, "only those whose floor cannot be met", default=False),
    )
    def get(self, request: Request) -> Response:
        """List what tenants and containers are promised, get and move.

        Those of one's own project unless one may see all.
        """
        given, wanted = self.wanted(request, "short")
        accounts = visible_accounts(request, self.rules["get"])
        table = report_tables.flows(bandwidth_report.current_report(self.backend, idle=True), accounts, **wanted)
        if given.flag("short"):
            table = replace(table, rows={key: one for key, one in table.rows.items() if one["short"] > 0})
        return self.listed(request, "flows", table, "short")


class NodeBandwidthView(MeasuredView):
    """Proxies and storage nodes."""

    filters = (_NODE, _SIDE, _METHOD)

    @_list("nodes", shapes.NodeBandwidthPageSerializer, *filters)
    def get(self, request: Request) -> Response:
        """List what nodes can move, are given and move."""
        _, wanted = self.wanted(request)
        table = report_tables.nodes(bandwidth_report.current_report(self.backend), **wanted)
        return self.listed(request, "nodes", table)


class PartsView(MeasuredView):
    """Where flows move."""

    filters = (_ACCOUNT, _CONTAINER, _METHOD, _STORAGE_POLICY, _NODE, _SIDE, _DEVICE)

    @_list("parts", shapes.PartPageSerializer, *filters)
    def get(self, request: Request) -> Response:
        """List on which nodes and devices flows move how much."""
        _, wanted = self.wanted(request)
        table = report_tables.parts(bandwidth_report.current_report(self.backend), **wanted)
        return self.listed(request, "parts", table)


class DevicesView(MeasuredView):
    """Disks."""

    filters = (_NODE, _DEVICE, _METHOD)

    @_list("devices", shapes.DeviceBandwidthPageSerializer, *filters)
    def get(self, request: Request) -> Response:
        """List what devices move."""
        _, wanted = self.wanted(request)
        table = report_tables.devices(bandwidth_report.current_report(self.backend), **wanted)
        return self.listed(request, "devices", table)


class BandwidthMetricsView(NonJSONView):
    """The same for Prometheus."""

    renderer_classes = (TextRenderer, JSONRenderer)
    filters = PartsView.filters

    @operation("sluice:bandwidth:metrics", "bandwidth_metrics", {(200, TEXT): OpenApiTypes.STR}, *filters)
    def get(self, request: Request) -> Response:
        """Give what tenants get and move, by node and device too, in Prometheus' text format.

        The rows of `/bw/flows` and `/bw/parts` as gauges. Where `node`, `side` or `device` is given there are
        parts alone, since flows are of the whole cluster.
        """
        wanted = chosen(self.query(request, *(one.name for one in self.filters)), self.filters)
        return Response(prometheus_bandwidth.exposition(self.backend, **wanted), content_type=CONTENT_TYPE)
