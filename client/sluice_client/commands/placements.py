"""``object locality``, ``container create`` and ``placement``: places of objects, and storage policies of new
containers.
"""

from __future__ import annotations

from argparse import Namespace
from typing import Any, Final

from sluice_client.command_base import crud
from sluice_client.command_base.arguments import WAIT, Argument
from sluice_client.command_base.command import ShowCommand
from sluice_client.command_base.targets import target_path
from sluice_client.errors import ClientError
from sluice_client.resources import registry
from sluice_client.resources.columns import Data

_POLICY: Final = Argument("storage_policy", "a storage policy of Swift's", {"metavar": "STORAGE_POLICY"})
PLACEMENT: Final = crud.Resource(
    "placement",
    "/placements",
    registry.PLACEMENT_LIST,
    registry.PLACEMENT,
    key="account",
    filters=(Argument("--storage-policy", "only those on this storage policy"),),
)


def split(path: str, form: str) -> list[str]:
    """Return the parts of ``path``, as many as ``form`` has.

    :raises ClientError: when one is missing or empty
    """
    parts = path.split("/", form.count("/"))
    if len(parts) <= form.count("/") or not all(parts):
        raise ClientError(f"`{path}` is not complete, expected {form}")
    return parts


class ShowLocality(ShowCommand, words="object locality show", earlier="locality show"):
    """Show the devices that hold the replicas or fragments of an object, by Swift's rings."""

    columns = registry.LOCALITY
    arguments = (Argument("path", "account/container/object", {"metavar": "PATH", "type": target_path}),)
    examples = ("AUTH_acme/logs/2026/01.gz -f json",)

    def fetch(self, args: Namespace) -> Data:
        """Primary devices, in the order of the ring."""
        return self.client.locality(*split(args.path, "account/container/object"))


class CreateContainer(ShowCommand, words="container create"):
    """Create a container on a storage policy."""

    columns = registry.CONTAINER
    arguments = (Argument("path", "account/container", {"metavar": "PATH"}), _POLICY)
    examples = ("AUTH_acme/archive ec42",)

    def fetch(self, args: Namespace) -> Data:
        """The container, and whether it is new."""
        account, container = split(args.path, "account/container")
        return self.client.create_container(account, container, args.storage_policy)


class ListPlacements(crud.ListResources, resource=PLACEMENT, words="placement list"):
    """List the storage policies of tenants' new containers."""


class ShowPlacement(crud.ShowResource, resource=PLACEMENT, words="placement show"):
    """Show the storage policy of a tenant's new containers."""

    examples = ("AUTH_acme",)


class SetPlacement(crud.ShowResource, resource=PLACEMENT, words="placement set"):
    """Set the storage policy of a tenant's new containers."""

    arguments = (_POLICY, WAIT)
    examples = ("AUTH_acme gold --wait 5",)

    def fetch(self, args: Namespace) -> Data:
        """The placement."""
        return self.client.place(args.account, args.storage_policy, args.wait)


class UnsetPlacement(crud.EachResource, resource=PLACEMENT, words="placement unset", earlier="placement delete"):
    """Return the new containers of tenants to Swift's default storage policy."""

    arguments = (WAIT,)
    examples = ("AUTH_acme",)

    def each(self, name: str, args: Namespace) -> tuple[str, Any]:
        """Unset one."""
        self.collection.delete(name, wait=args.wait)
        return f"placement {name} is unset", None
