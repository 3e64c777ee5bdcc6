"""The API's own operations and those about the whole cluster.

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

#: The version for keystoneauth; an incompatible API would have another first number.
VERSION: Final = "v1.0"
#: Only one thread makes the schema: drf-spectacular loads its extensions meanwhile, and a second thread would fail.
_generation: Final = Lock()


@operation("GET /", OPEN, VersionsSerializer)
def list_versions(view: View, request: Request) -> Response:
    """List the versions of this API with their URLs, as keystoneauth discovers them; needs no token.

    The URLs begin with the URL of the request: behind a proxy with the proxy's, with its prefix, where the option
    `enable_proxy_headers_parsing` is true.
    """
    try:
        url = request.build_absolute_uri(request.path)
    except DisallowedHost as error:
        raise CallerError("`Host` is not valid, expected a name or address and perhaps a port") from error
    version = {"id": VERSION, "status": "CURRENT", "links": [{"rel": "self", "href": url}]}
    return Response({"versions": [version]})


@operation(
    "GET /health",
    OPEN,
    {200: HealthSerializer, 503: OpenApiResponse(HealthSerializer, "without Redis nothing can be read or changed")},
)
def health(view: View, request: Request) -> Response:
    """Return whether the controller works; needs no token.

    503 when Redis is unreachable; a degraded cluster is still 200.
    """
    health_by_service = dependency_health(view.backend)
    status = "ok" if set(health_by_service.values()) == {"ok"} else "degraded"
    body = {"status": status, "dependencies": health_by_service}
    if health_by_service["redis"] == "ok":
        return Response(body)
    return Response(body, HTTPStatus.SERVICE_UNAVAILABLE, headers={"Retry-After": RETRY_AFTER})


@operation("GET /metrics", OPEN, {(200, TEXT): OpenApiTypes.STR})
def metrics(view: TextView, request: Request) -> Response:
    """Export metrics of this API and of the cluster in Prometheus' text format; needs no token.

    They contain the names of nodes and actor hosts, but no tenants, policies or paths.
    """
    return Response(exposition(view.backend), content_type=CONTENT_TYPE)


@operation(
    "GET /schema", Rule("sluice:schema:show", "@", "show the schema of this API; any valid token"), OpenApiTypes.OBJECT
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


# ``/overview``: the state of the whole cluster, in counts.


@operation(
    "GET /overview",
    Rule(
        "sluice:overview:show",
        READS_OWN,
        "count policies by state, and floors that are not met",
        everybody="count those of all projects, and nodes and hosts by state",
    ),
    OverviewSerializer,
)
def show_overview(view: View, request: Request) -> Response:
    """Count policies, nodes and hosts by state, and floors that are not met.

    Readers of a project get the counts of its own policies alone.
    """
    found = overview(view.backend, visible_accounts(request, view.rule))
    return Response(OverviewSerializer.render(found))


# ``/events``: problems of nodes, policies and volumes.


class EventLinesRenderer(JsonLinesRenderer):
    """Events as lines of JSON, for log collectors."""

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
    query_text("since", "only events logged from this time on (ISO 8601 or Unix seconds), or after this id"),
    query_word("severity", "only events of at least this severity", SEVERITIES, default=INFO),
    query_text("node", "only events of this node"),
    query_text("policy", "only events about this policy"),
    query_wait("for an event, if there is none yet"),
)
def list_events(view: EventsView, request: Request) -> Response:
    """List events, oldest first: problems anywhere in the cluster, and their end.

    Only the newest events are kept. `last` is the value of `since` for a request of later events. With
    `Accept: application/x-ndjson` the answer is one line of JSON for each event of the page, and nothing else.
    Readers of a project see the events about its policies.
    """
    accounts = visible_accounts(request, "sluice:events:list")
    policies = None if accounts is None else events.policies_of_accounts(view.backend, accounts)
    wanted = events.EventFilter(view.given["severity"], view.given["node"], view.given["policy"], policies)
    marker = view.given["marker"]
    after = events.read_marker(marker) if marker else events.read_position(view.given["since"])
    page = events.list_events(view.backend, wanted, after, view.given["limit"], view.seconds)
    return Response(EventPageSerializer.render(page))


# ``/permissions``: the caller's permissions, decided by the same rules and targets as in all other views.

#: Level → the least number of slashes in its paths.
_SLASHES: Final = {TENANT: 0, CONTAINER: 1, OBJECT: 2, VOLUME: 1}
_FORM: Final = "account[/container[/object]], or the target of a sentence after FOR: `VOLUME account/id`, `GROUP name`"


class PermissionsView(View):
    """The permissions of the caller."""

    def _target(self) -> Target | None:
        """The target or the policy of the query, as rules get it; None without either."""
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
    Rule("sluice:permissions:show", "@", "show one's own permissions; any valid token"),
    PermissionsSerializer,
    query_text("target", f"{_FORM}; only operations on targets are answered"),
    query_text("policy", "the id of a policy, in place of a target"),
    query_text("filter", "the keyword of the filter that is set or deleted; by default a self-service filter"),
    query_text("stereotype", "the name of a stereotype that is applied"),
)
def show_permissions(view: PermissionsView, request: Request) -> Response:
    """Show what the caller may do with a target or, without one, in general.

    Without a target, an operation on a target or a list is allowed if it is allowed for the caller's own project. For
    targets of other projects, and for targets that do not exist, the answer is the same.
    """
    target = view._target()
    known = {"stereotype": view.given["stereotype"]} if view.given["stereotype"] else {}
    if view.given["filter"]:
        uploads = view.backend.policy_cache.contents().uploads
        known |= self_service_target([view.given["filter"].lower()], uploads)
    return Response({"permissions": allowed_operations(request.user, target, known)})


def read_target(text: str, catalogue: Catalogue) -> Target:
    """The target called ``text``, as rules get it; its existence is not checked.

    :raises CallerError: when it is not a target
    :raises PeerError: when Keystone, which knows the account of a project's name, is unreachable
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
    except CallerError:  # projects of several domains have this name: the target is none of them
        return thing_target(level)
