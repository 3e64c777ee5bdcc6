"""``/nodes``: what the agents say."""

from __future__ import annotations

from drf_spectacular.utils import OpenApiResponse
from rest_framework.request import Request
from rest_framework.response import Response

from sluice_controller.api.openapi import MARKER, operation, query_flag, query_limit, query_word
from sluice_controller.api.serializers.operations.nodes import (
    NODE_STATES,
    HeadSerializer,
    NodeListSerializer,
    NodeSerializer,
)
from sluice_controller.api.views.base import View
from sluice_controller.api.views.resources import no_content
from sluice_controller.catalog import selectors
from sluice_controller.policies import services


class NodesView(View):
    """All nodes."""

    @operation(
        "sluice:nodes:list",
        "list_nodes",
        NodeListSerializer,
        query_limit("nodes on a page", default=1000),
        MARKER,
        query_word("state", "only nodes in this state", NODE_STATES),
        query_flag("refusing", "only nodes that refuse something"),
    )
    def get(self, request: Request) -> Response:
        """List nodes and how far each of them is, by name.

        A page of nodes.
        """
        limit, cluster = self.given["limit"], selectors.cluster_now(self.backend)
        wanted = selectors.NodeFilter(self.given["marker"], self.given["state"], self.given["refusing"])
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
        cluster = selectors.cluster_now(self.backend)
        found = selectors.find_node(cluster, node)
        return Response(NodeSerializer.render(found, state=cluster.state(found)))

    @operation("sluice:nodes:forget", "forget_node", {204: OpenApiResponse(description="forgotten")}, errors=(404,))
    def delete(self, request: Request, node: str) -> Response:
        """Forget a node that is no more; one that lives reports itself again.

        204.
        """
        services.forget_node(self.backend, node)
        return no_content()


class AdoptView(View):
    """The command after a wiped or failed-over Redis."""

    @operation("sluice:nodes:adopt", "adopt_history", HeadSerializer, takes=None)
    def post(self, request: Request) -> Response:
        """Tell all nodes to take the current history as it is.

        After Redis was wiped or failed over, nodes keep enforcing what they knew and report `stale_history`.
        This makes them load what Redis holds now, even if that is nothing.
        """
        return Response(HeadSerializer.render(services.adopt_history(self.backend, request.user.name)))
