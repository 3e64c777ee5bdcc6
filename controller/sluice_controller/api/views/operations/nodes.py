"""``/nodes``: what the agents say."""

from __future__ import annotations

from http import HTTPStatus

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiResponse
from rest_framework.request import Request
from rest_framework.response import Response

from sluice_controller.api.openapi import operation, query
from sluice_controller.api.serializers.nodes import NODE_STATES, HeadSerializer, NodeListSerializer, NodeSerializer
from sluice_controller.api.views.base import View
from sluice_controller.catalog import selectors
from sluice_controller.policies import services
from sluice_controller.validation.bodies import empty_body


class NodesView(View):
    """All nodes."""

    @operation(
        "sluice:nodes:list",
        "list_nodes",
        NodeListSerializer,
        query("limit", OpenApiTypes.INT, "nodes on a page, 1 to 1000", default=1000),
        query("marker", OpenApiTypes.STR, "`next_marker` of the page before"),
        query("state", OpenApiTypes.STR, "only nodes in this state", enum=NODE_STATES),
        query("refusing", OpenApiTypes.BOOL, "only nodes that refuse something", default=False),
    )
    def get(self, request: Request) -> Response:
        """List nodes and how far each of them is, by name.

        A page of nodes.
        """
        given = self.query(request, "limit", "marker", "state", "refusing")
        limit = given.integer("limit", selectors.LARGEST_PAGE, 1, selectors.LARGEST_PAGE)
        cluster = selectors.cluster_now(self.backend)
        wanted = selectors.NodeFilter(given.text("marker"), given.one_of("state", NODE_STATES), given.flag("refusing"))
        nodes = [node for node in cluster.nodes if wanted.matches(node, cluster)]
        data = {
            "nodes": [NodeSerializer.render(node, state=cluster.state(node)) for node in nodes[:limit]],
            "next_marker": nodes[limit - 1].node if len(nodes) > limit else None,
            "head": HeadSerializer.render(cluster.head),
        }
        return Response(data)


class NodeView(View):
    """One node."""

    @operation("sluice:nodes:show", "show_node", NodeSerializer, errors=(404,))
    def get(self, request: Request, node: str) -> Response:
        """Show a node.

        The node's last report.
        """
        self.query(request)
        cluster = selectors.cluster_now(self.backend)
        found = selectors.find_node(cluster, node)
        return Response(NodeSerializer.render(found, state=cluster.state(found)))

    @operation("sluice:nodes:forget", "forget_node", {204: OpenApiResponse(description="forgotten")}, errors=(404,))
    def delete(self, request: Request, node: str) -> Response:
        """Forget a node that is no more; one that lives reports itself again.

        204.
        """
        self.query(request)
        services.forget_node(self.backend, node)
        return Response(status=HTTPStatus.NO_CONTENT)


class AdoptView(View):
    """The command after a wiped or failed-over Redis."""

    @operation("sluice:nodes:adopt", "adopt_history", HeadSerializer, takes=None)
    def post(self, request: Request) -> Response:
        """Tell all nodes to take the current history as it is.

        After Redis was wiped or failed over, nodes keep enforcing what they knew and report `stale_history`.
        This makes them load what Redis holds now, even if that is nothing.
        """
        self.query(request)
        empty_body(request.data)
        return Response(HeadSerializer.render(services.adopt_history(self.backend, request.user.name)))
