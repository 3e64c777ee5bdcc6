"""What the API says of itself and of the whole cluster.

``/``, ``/health`` and ``/metrics``, which need no token; ``/schema``, ``/overview``, ``/events`` and ``/permissions``.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from http import HTTPStatus
from threading import Lock
from typing import Any, Final

from django.core.exceptions import DisallowedHost
from drf_spectacular.generators import SchemaGenerator
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiResponse
from rest_framework.renderers import JSONRenderer
from rest_framework.request import Request
from rest_framework.response import Response

from sluice_controller.api.openapi import MARKER, operation, query_limit, query_text, query_wait, query_word
from sluice_controller.api.permissions import (
    OPEN,
    allowed_operations,
    plan_target,
    self_service_target,
    thing_target,
    visible_accounts,
)
from sluice_controller.api.prometheus.cluster import CONTENT_TYPE, exposition
from sluice_controller.api.renderers import JSON_LINES, TEXT, JsonLinesRenderer, NonJSONView, TextView
from sluice_controller.api.serializers.cluster import (
    EventPageSerializer,
    HealthSerializer,
    OverviewSerializer,
    PermissionsSerializer,
    VersionsSerializer,
)
from sluice_controller.api.view import View
from sluice_controller.catalog import events
from sluice_controller.catalog.nodes import dependency_health
from sluice_controller.catalog.vocabulary_index import path_target
from sluice_controller.errors import RETRY_AFTER
from sluice_controller.identity.rules import READS_OWN, Rule, Target
from sluice_controller.policies.overview import overview
from sluice_core.errors import CallerError
from sluice_core.messages.events import INFO, SEVERITIES
from sluice_core.messages.policies import ALL, CLUSTER, CONTAINER, GROUP, OBJECT, TENANT, VOLUME
from sluice_dsl.catalogue.base import Catalogue

#: As keystoneauth reads it; another one would have another first number.
VERSION: Final = "v1.0"
#: The schema is made by one thread: drf-spectacular loads its extensions meanwhile, and another one would fail.
_generation: Final = Lock()


@operation("GET /", OPEN, VersionsSerializer)
def list_versions(view: View, request: Request) -> Response:
    """List the versions of this API with their URLs, as keystoneauth discovers them; needs no token.

    The URL is the one that was asked: behind a proxy the proxy's, with its prefix, where the option
    `enable_proxy_headers_parsing` is true.
    """
    try:
        url = request.build_absolute_uri(request.path)
    except DisallowedHost as error:
        raise CallerError("`Host` names no host, expected a name or address and perhaps a port") from error
    version = {"id": VERSION, "status": "CURRENT", "links": [{"rel": "self", "href": url}]}
    return Response({"versions": [version]})


@operation(
    "GET /health",
    OPEN,
    {200: HealthSerializer, 503: OpenApiResponse(HealthSerializer, "Redis is away: nothing can be read or changed")},
)
def health(view: View, request: Request) -> Response:
    """Say whether the controller works; needs no token.

    503 when Redis is away; a degraded cluster is still served with 200.
    """
    health_by_service = dependency_health(view.backend)
    status = "ok" if set(health_by_service.values()) == {"ok"} else "degraded"
    body = {"status": status, "dependencies": health_by_service}
    if health_by_service["redis"] == "ok":
        return Response(body)
    return Response(body, HTTPStatus.SERVICE_UNAVAILABLE, headers={"Retry-After": RETRY_AFTER})


@operation("GET /metrics", OPEN, {(200, TEXT): OpenApiTypes.STR})
def metrics(view: TextView, request: Request) -> Response:
    """Give the numbers of this API and of the cluster in Prometheus' text format; needs no token.

    Names of nodes and actor hosts are in it; tenants, policies and paths are not.
    """
    return Response(exposition(view.backend), content_type=CONTENT_TYPE)


@operation(
    "GET /schema", Rule("sluice:schema:show", "@", "describe this API; everybody with a token"), OpenApiTypes.OBJECT
)
def schema(view: View, request: Request) -> Response:
    """Describe this API as OpenAPI 3.1.

    The description.
    """
    with _generation:
        return Response(_schema())


@cache
def _schema() -> Mapping[str, Any]:
    found: Mapping[str, Any] = SchemaGenerator().get_schema(request=None, public=True)
    return found


# ``/overview``: whether all is well, in counts.


@operation(
    "GET /overview",
    Rule(
        "sluice:overview:show",
        READS_OWN,
        "count policies by state, and floors that are not met",
        everybody="count those of everybody, and nodes and hosts by state",
    ),
    OverviewSerializer,
)
def show_overview(view: View, request: Request) -> Response:
    """Count policies, nodes and hosts by state, and floors that are not met.

    Readers of a project get the counts of its own policies alone.
    """
    found = overview(view.backend, visible_accounts(request, view.rule))
    return Response(OverviewSerializer.render(found))


# ``/events``: what went wrong anywhere.


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


# ``/permissions``: what the caller may do, decided by the rules and the targets by which all other views decide.

#: Level → the least number of slashes in a path of it.
_SLASHES: Final = {TENANT: 0, CONTAINER: 1, OBJECT: 2, VOLUME: 1}
_FORM: Final = "account[/container[/object]], or what follows FOR in a sentence: `VOLUME account/id`, `GROUP name`"


class PermissionsView(View):
    """What the caller may do."""

    def _target(self) -> Target | None:
        """What rules see of the target or the policy in the query; None without either."""
        text, policy = self.given["target"], self.given["policy"]
        if text and policy:
            raise CallerError("expected `target` or `policy`, not both")
        if text:
            return read_target(text, self.backend.catalogue)
        if not policy:
            return None
        contents = self.backend.policy_cache.contents()
        found = contents.policies.get(policy)
        return plan_target(found.plan, contents.uploads) if found else thing_target(CONTAINER)


@operation(
    "GET /permissions",
    Rule("sluice:permissions:show", "@", "ask what one may do oneself; everybody with a token"),
    PermissionsSerializer,
    query_text("target", f"{_FORM}; only operations about things are answered"),
    query_text("policy", "the id of a policy, in place of a target"),
    query_text("filter", "the keyword of a filter that is set or deleted; without it one that is self-service"),
    query_text("stereotype", "the name of a stereotype that is applied"),
)
def show_permissions(view: PermissionsView, request: Request) -> Response:
    """Say what the caller may do, to a target or, without one, at all.

    Without a target, an operation about a thing or a list is allowed when it is to what is the caller's own. Of
    somebody else's target, and of one that does not exist, everything is answered alike.
    """
    target = view._target()
    known = {"stereotype": view.given["stereotype"]} if view.given["stereotype"] else {}
    if view.given["filter"]:
        uploads = view.backend.policy_cache.contents().uploads
        known |= self_service_target([view.given["filter"].lower()], uploads)
    return Response({"permissions": allowed_operations(request.user, target, known)})


def read_target(text: str, catalogue: Catalogue) -> Target:
    """What rules see of the target that is called ``text``; whether there is one is not looked at.

    :raises CallerError: when it is no target
    :raises PeerError: when Keystone, which knows the account of a project's name, is away
    """
    word, _, rest = text.partition(" ")
    level = word.lower()
    if level in (CLUSTER, ALL, GROUP):
        return thing_target(level)
    if level not in _SLASHES or not rest:
        level, rest = path_target(text).level, text
    parts = rest.split("/", max(1, _SLASHES[level]))
    if len(parts) <= _SLASHES[level] or not all(parts):
        raise CallerError(f"`target` is `{text}`, expected {_FORM}")
    try:
        return thing_target(level, catalogue.account(parts[0]))
    except CallerError:  # projects of several domains are called so: it is none of these
        return thing_target(level)
