"""``/events``: what went wrong anywhere."""

from __future__ import annotations

from drf_spectacular.types import OpenApiTypes
from rest_framework.renderers import JSONRenderer
from rest_framework.request import Request
from rest_framework.response import Response

from sluice_controller.api.openapi import MARKER, operation, query_limit, query_text, query_wait, query_word
from sluice_controller.api.permissions import visible_accounts
from sluice_controller.api.renderers import JSON_LINES, JsonLinesRenderer, NonJSONView
from sluice_controller.api.serializers.cluster.events import EventPageSerializer
from sluice_controller.catalog import events
from sluice_controller.identity.rules import READS_OWN, Rule
from sluice_core.messages.events import INFO, SEVERITIES


class EventLinesRenderer(JsonLinesRenderer):
    """Events, for collectors of logs."""

    field = "events"


class EventsView(NonJSONView):
    """The log of events."""

    renderer_classes = (JSONRenderer, EventLinesRenderer)


@operation(
    "GET /events",
    Rule("sluice:events:list", READS_OWN, "list events about policies", everybody="list all events"),
    {(200, "application/json"): EventPageSerializer, (200, JSON_LINES): OpenApiTypes.STR},
    query_limit("events on a page"),
    MARKER,
    query_text("since", "only events logged from this time on (ISO 8601 or unix seconds), or behind this id"),
    query_word("severity", "only events of at least this severity", SEVERITIES, default=INFO),
    query_text("node", "only events of this node"),
    query_text("policy", "only events about this policy"),
    query_wait("for an event, where there is none yet"),
)
def list_events(view: EventsView, request: Request) -> Response:
    """List events, oldest first: what went wrong anywhere.

    Only the newest events are kept. `last` is the `since` with which what comes later is asked for. With
    `Accept: application/x-ndjson` there is a line of JSON for each event of the page, and nothing else.
    Readers of a project see the events about its policies.
    """
    accounts = visible_accounts(request, "sluice:events:list")
    policies = None if accounts is None else events.policies_of_accounts(view.backend, accounts)
    wanted = events.EventFilter(view.given["severity"], view.given["node"], view.given["policy"], policies)
    marker = view.given["marker"]
    after = events.read_marker(marker) if marker else events.read_position(view.given["since"])
    page = events.list_events(view.backend, wanted, after, view.given["limit"], view.seconds)
    return Response(EventPageSerializer.render(page))
