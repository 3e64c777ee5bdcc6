"""``tenant group``, ``container group`` and ``stereotype``: many targets under one name, many sentences under one."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterable
from typing import Any, ClassVar, Final

from sluice_client.command_base import crud
from sluice_client.command_base.arguments import WAIT, Argument, force_option, names_argument, repeated_option
from sluice_client.command_base.command import ListCommand, ShowCommand
from sluice_client.command_base.each import EachCommand
from sluice_client.command_base.targets import target_path
from sluice_client.resources import registry
from sluice_client.resources.columns import Data
from sluice_client.rest.collection import join_path

_FORCE: Final = force_option("even while policies use it, which keep its meaning")
GROUP: Final = crud.Resource(
    "tenant group",
    "/registry/gtenants",
    registry.TENANT_GROUP_LIST,
    registry.TENANT_GROUP,
    fields=(repeated_option("--tenant", "a tenant of the group", "tenants"),),
    delete_options=(_FORCE,),
)
CONTAINER_GROUP: Final = crud.Resource(
    "container group",
    "/registry/gcontainers",
    registry.CONTAINER_GROUP_LIST,
    registry.CONTAINER_GROUP,
    fields=(repeated_option("--container", "a container of the group, as account/container", "containers"),),
    delete_options=(_FORCE,),
)
STEREOTYPE: Final = crud.Resource(
    "stereotype",
    "/stereotypes",
    registry.STEREOTYPE_LIST,
    registry.STEREOTYPE,
    fields=(
        Argument("--text", "sentences `FOR {target} …`"),
        Argument("--help-text", "its purpose", {"dest": "help", "metavar": "TEXT"}),
    ),
    set_options=(WAIT,),
    delete_options=(force_option("even if it is applied: its policies stay"),),
)
_CONTAINER: Final = "a container, as account/container"
_GROUP: Final = Argument("group", "the group", {"metavar": "GROUP"})
_TARGET: Final = "a tenant, or account/container"
_STEREOTYPE: Final = Argument("name", "the stereotype", {"metavar": "NAME"})


class ListGroups(crud.ListResources, resource=GROUP, words="tenant group list", earlier="group list"):
    """List groups of tenants."""


class ShowGroup(crud.ShowResource, resource=GROUP, words="tenant group show", earlier="group show"):
    """Show a group's tenants."""

    examples = ("gold",)


class CreateGroup(crud.CreateResource, resource=GROUP, words="tenant group create", earlier="group create"):
    """Create a group of tenants."""

    examples = ("gold --tenant acme --tenant AUTH_beta",)


class SetGroup(crud.UpdateResource, resource=GROUP, words="tenant group set", earlier="group set"):
    """Replace all tenants of a group."""

    examples = ("gold --tenant acme",)


class DeleteGroup(crud.DeleteResources, resource=GROUP, words="tenant group delete", earlier="group delete"):
    """Delete groups of tenants."""

    examples = ("gold",)


class ListContainerGroups(crud.ListResources, resource=CONTAINER_GROUP, words="container group list"):
    """List groups of containers."""


class ShowContainerGroup(crud.ShowResource, resource=CONTAINER_GROUP, words="container group show"):
    """Show a group's containers."""

    examples = ("archives",)


class CreateContainerGroup(crud.CreateResource, resource=CONTAINER_GROUP, words="container group create"):
    """Create a group of containers."""

    examples = ("archives --container AUTH_acme/logs",)


class SetContainerGroup(crud.UpdateResource, resource=CONTAINER_GROUP, words="container group set"):
    """Replace all containers of a group."""

    examples = ("archives --container AUTH_acme/logs --container AUTH_beta/logs",)


class DeleteContainerGroup(crud.DeleteResources, resource=CONTAINER_GROUP, words="container group delete"):
    """Delete groups of containers."""

    examples = ("archives",)


class _Members(crud.ResourceCommand, EachCommand):
    """Changes members of a group, one after the other."""

    #: help of the argument for the members
    member: ClassVar[str] = "a tenant"

    @classmethod
    def key_arguments(cls) -> crud.Arguments:
        """The group, and its members."""
        return _GROUP, names_argument("member", cls.member)

    def path(self, name: str, args: Namespace) -> str:
        """The path of the member."""
        return self.resource.path + join_path(args.group, self.resource.fields[0].dest, name)


class _Add(_Members):
    def each(self, name: str, args: Namespace) -> tuple[str, Any]:
        """Add one."""
        return f"{name} is in group {args.group}", self.client.put(self.path(name, args))


class _Remove(_Members):
    def each(self, name: str, args: Namespace) -> tuple[str, Any]:
        """Remove one."""
        self.client.delete(self.path(name, args))
        return f"{name} is not in group {args.group} any more", None


class AddTenant(_Add, resource=GROUP, words="tenant group add", earlier="group add"):
    """Add tenants to a group."""

    examples = ("gold beta gamma",)


class RemoveTenant(_Remove, resource=GROUP, words="tenant group remove", earlier="group remove"):
    """Remove tenants from a group."""

    examples = ("gold beta",)


class AddContainer(_Add, resource=CONTAINER_GROUP, words="container group add"):
    """Add containers to a group."""

    member = _CONTAINER
    examples = ("archives AUTH_beta/logs",)


class RemoveContainer(_Remove, resource=CONTAINER_GROUP, words="container group remove"):
    """Remove containers from a group."""

    member = _CONTAINER
    examples = ("archives AUTH_beta/logs",)


class ListStereotypes(crud.ListResources, resource=STEREOTYPE, words="stereotype list"):
    """List stereotypes."""


class ShowStereotype(crud.ShowResource, resource=STEREOTYPE, words="stereotype show"):
    """Show a stereotype and how often it is applied."""

    examples = ("archive",)


class CreateStereotype(crud.CreateResource, resource=STEREOTYPE, words="stereotype create"):
    """Store sentences under a name, with {target} in place of the target."""

    examples = ("archive --text 'FOR {target} WHEN OBJECT_TYPE = DOCS DO SET compression'",)


class SetStereotype(crud.UpdateResource, resource=STEREOTYPE, words="stereotype set"):
    """Change a stereotype; other fields stay."""

    examples = ("archive --help-text 'documents are kept'",)


class DeleteStereotype(crud.DeleteResources, resource=STEREOTYPE, words="stereotype delete"):
    """Delete stereotypes."""

    examples = ("archive",)


class ListApplied(ListCommand, words="stereotype target list", earlier="stereotype applied"):
    """List the tenants and containers that a stereotype is applied to."""

    columns = registry.APPLIED_LIST
    arguments = (_STEREOTYPE,)
    examples = ("archive",)

    def fetch(self, args: Namespace) -> Iterable[Data]:
        """All of them."""
        return self.client.collection(STEREOTYPE.path + join_path(args.name, "tenants"), "targets").list()


class ApplyStereotype(ShowCommand, words="stereotype apply"):
    """Apply a stereotype to a tenant or a container: all of its sentences, or none."""

    columns = registry.APPLIED
    arguments = (_STEREOTYPE, Argument("target", _TARGET, {"metavar": "TARGET", "type": target_path}), WAIT)
    examples = (
        "archive AUTH_acme --wait 10",
        "archive AUTH_acme/logs",
    )

    def fetch(self, args: Namespace) -> Data:
        """The policies that it has set there."""
        return self.client.put(STEREOTYPE.path + join_path(args.name, "tenants", args.target), wait=args.wait)


class UnapplyStereotype(EachCommand, words="stereotype unapply", earlier="stereotype take back"):
    """Delete the policies that a stereotype has set for targets."""

    arguments = (_STEREOTYPE, names_argument("target", _TARGET, target_path), WAIT)
    examples = ("archive AUTH_acme AUTH_acme/logs",)

    def each(self, name: str, args: Namespace) -> tuple[str, Any]:
        """Unapply it from one."""
        self.client.delete(STEREOTYPE.path + join_path(args.name, "tenants", name), args.wait)
        return f"stereotype {args.name} is unapplied from {name}", None
