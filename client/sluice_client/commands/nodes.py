"""``node``: machines that enforce policies."""

from __future__ import annotations

from argparse import Namespace
from typing import Final

from sluice_client import resources
from sluice_client.columns import Data
from sluice_client.command import ShowCommand
from sluice_client.standard import DeleteThem, ListAll, Resource, ShowIt

NODE: Final = Resource("node", "/nodes", "nodes", resources.NODE_LIST, resources.NODE, key="node")


class ListNodes(ListAll):
    """List nodes and how far each of them is."""

    resource = NODE


class ShowNode(ShowIt):
    """Show a node and what it refuses."""

    resource = NODE


class DeleteNode(DeleteThem):
    """Forget nodes that are no more; one that lives reports itself again."""

    resource = NODE


class AdoptHistory(ShowCommand):
    """Tell all nodes to take the current history as it is, after Redis was wiped or failed over."""

    columns = resources.HEAD

    def fetch(self, given: Namespace) -> Data:
        """The history that they take."""
        return self.client.adopt()
