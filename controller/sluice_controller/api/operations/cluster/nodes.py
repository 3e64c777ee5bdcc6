"""``/nodes``: the reports of agents."""

from __future__ import annotations

from drf_spectacular.utils import OpenApiResponse
from rest_framework.request import Request
from rest_framework.response import Response

from sluice_controller.api.openapi import MARKER, operation, query_flag, query_limit, query_word
from sluice_controller.api.resources import no_content
from sluice_controller.api.serializers.cluster import (
    NODE_STATES,
    HeadSerializer,
    NodeListSerializer,
    NodeSerializer,
)
from sluice_controller.api.view import View
from sluice_controller.catalog.nodes import NodeFilter, cluster_now, find_node
from sluice_controller.identity.rules import ADMIN, Rule
from sluice_controller.policies import services


@operation(
    "GET /nodes",
    Rule("sluice:nodes:list", ADMIN, "list nodes"),
    NodeListSerializer,
    query_limit("nodes on a page", default=1000),
    MARKER,
    query_word("state", "only nodes in this state", NODE_STATES),
    query_flag("refusing", "only nodes that refuse assignments or code"),
)
def list_nodes(view: View, request: Request) -> Response:
    """List nodes by name, each with the last change that it has acknowledged.

    A page of nodes.
    """
    limit, cluster = view.given["limit"], cluster_now(view.backend)
    wanted = NodeFilter(view.given["marker"], view.given["state"], view.given["refusing"])
    nodes = [node for node in cluster.nodes if wanted.matches(node, cluster)]
    data = {
        "nodes": [NodeSerializer.render(node, state=cluster.state(node)) for node in nodes[:limit]],
        "next_marker": nodes[limit - 1].node if len(nodes) > limit else None,
        "head": HeadSerializer.render(cluster.head),
    }
    return Response(data)


@operation("GET /nodes/<str:node>", Rule("sluice:nodes:show", ADMIN, "show a node"), NodeSerializer)
def show_node(view: View, request: Request, node: str) -> Response:
    """Show a node.

    The node's last report.
    """
    cluster = cluster_now(view.backend)
    found = find_node(cluster, node)
    return Response(NodeSerializer.render(found, state=cluster.state(found)))


@operation(
    "DELETE /nodes/<str:node>",
    Rule("sluice:nodes:forget", ADMIN, "forget a node"),
    {204: OpenApiResponse(description="forgotten")},
    errors=(404,),
)
def forget_node(view: View, request: Request, node: str) -> Response:
    """Forget a node that is gone; a node that still runs reports itself again.

    The answer has no body.
    """
    services.forget_node(view.backend, node)
    return no_content()


@operation(
    "POST /nodes/adopt",
    Rule("sluice:nodes:adopt", ADMIN, "make all nodes adopt the current history"),
    HeadSerializer,
    takes=None,
    errors=(),
)
def adopt_history(view: View, request: Request) -> Response:
    """Make all nodes adopt the current history.

    After Redis was wiped or failed over, nodes keep enforcing their last assignments and report `stale_history`.
    This call makes them load the contents of Redis, even if it is empty.
    """
    return Response(HeadSerializer.render(services.adopt_history(view.backend, request.user.name)))
