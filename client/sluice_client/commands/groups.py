"""``group``, ``container group`` and ``stereotype``: many targets under one name, many sentences under one."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterable
from typing import Any, ClassVar, Final

from sluice_client.command_base.command import (
    WAIT,
    Argument,
    EachCommand,
    ListCommand,
    ShowCommand,
    names_argument,
    repeated_option,
)
from sluice_client.command_base.crud import (
    CreateResource,
    DeleteResources,
    ListResources,
    Resource,
    ShowResource,
    UpdateResource,
)
from sluice_client.resources import registry
from sluice_client.resources.columns import Data
from sluice_client.rest.collection import join_path

_FORCE: Final = "even while policies use it, which keep what it meant"
GROUP: Final = Resource(
    "group",
    "/registry/gtenants",
    "gtenants",
    registry.TENANT_GROUP_LIST,
    registry.TENANT_GROUP,
    fields=(repeated_option("--tenant", "one of all its tenants", "tenants"),),
    force=_FORCE,
)
CONTAINER_GROUP: Final = Resource(
    "container group",
    "/registry/gcontainers",
    "gcontainers",
    registry.CONTAINER_GROUP_LIST,
    registry.CONTAINER_GROUP,
    fields=(repeated_option("--container", "one of all its containers, as account/container", "containers"),),
    force=_FORCE,
)
STEREOTYPE: Final = Resource(
    "stereotype",
    "/stereotypes",
    "stereotypes",
    registry.STEREOTYPE_LIST,
    registry.STEREOTYPE,
    fields=(
        Argument("--text", "sentences `FOR {target} …`"),
        Argument("--help-text", "what it is for", {"dest": "help", "metavar": "TEXT"}),
    ),
    force="even if it is applied: what it has set stays",
)
_GROUP: Final = Argument("group", "the group", {"metavar": "GROUP"})
_STEREOTYPE: Final = Argument("name", "the stereotype", {"metavar": "NAME"})


class ListGroups(ListResources):
    """List groups of tenants."""

    resource = GROUP


class ShowGroup(ShowResource):
    """Show a group's tenants."""

    resource = GROUP
    examples = ("gold",)


class CreateGroup(CreateResource):
    """Put tenants under one name."""

    resource = GROUP
    examples = ("gold --tenant acme --tenant AUTH_beta",)


class SetGroup(UpdateResource):
    """Name all tenants of a group anew."""

    resource = GROUP
    examples = ("gold --tenant acme",)


class DeleteGroup(DeleteResources):
    """Forget groups of tenants."""

    resource = GROUP
    examples = ("gold",)


class ListContainerGroups(ListResources):
    """List groups of containers."""

    resource = CONTAINER_GROUP


class ShowContainerGroup(ShowResource):
    """Show a group's containers."""

    resource = CONTAINER_GROUP
    examples = ("archives",)


class CreateContainerGroup(CreateResource):
    """Put containers under one name."""

    resource = CONTAINER_GROUP
    examples = ("archives --container AUTH_acme/logs",)


class SetContainerGroup(UpdateResource):
    """Name all containers of a group anew."""

    resource = CONTAINER_GROUP
    examples = ("archives --container AUTH_acme/logs --container AUTH_beta/logs",)


class DeleteContainerGroup(DeleteResources):
    """Forget groups of containers."""

    resource = CONTAINER_GROUP
    examples = ("archives",)


class _Members(EachCommand):
    """Something that is done to members of a group, one after the other."""

    resource: ClassVar[Resource]
    #: in the path, between a group and its members
    folder: ClassVar[str]
    names = "member"

    def path(self, name: str, args: Namespace) -> str:
        """Where the member is."""
        return self.resource.path + join_path(args.group, self.folder, name)


class _Add(_Members):
    def each(self, name: str, args: Namespace) -> tuple[str, Any]:
        """Add one."""
        return f"{name} is in group {args.group}", self.client.put(self.path(name, args))


class _Remove(_Members):
    def each(self, name: str, args: Namespace) -> tuple[str, Any]:
        """Remove one."""
        self.client.delete(self.path(name, args))
        return f"{name} is not in group {args.group} any more", None


class AddTenant(_Add):
    """Add tenants to a group."""

    resource, folder = GROUP, "tenants"
    arguments = (_GROUP, names_argument("member", "a tenant"))
    examples = ("gold beta gamma",)


class RemoveTenant(_Remove):
    """Take tenants out of a group."""

    resource, folder = GROUP, "tenants"
    arguments = (_GROUP, names_argument("member", "a tenant"))
    examples = ("gold beta",)


class AddContainer(_Add):
    """Add containers to a group."""

    resource, folder = CONTAINER_GROUP, "containers"
    arguments = (_GROUP, names_argument("member", "a container, as account/container"))
    examples = ("archives AUTH_beta/logs",)


class RemoveContainer(_Remove):
    """Take containers out of a group."""

    resource, folder = CONTAINER_GROUP, "containers"
    arguments = (_GROUP, names_argument("member", "a container, as account/container"))
    examples = ("archives AUTH_beta/logs",)


class ListStereotypes(ListResources):
    """List stereotypes."""

    resource = STEREOTYPE


class ShowStereotype(ShowResource):
    """Show a stereotype and how often it is applied."""

    resource = STEREOTYPE
    examples = ("archive",)


class CreateStereotype(CreateResource):
    """Keep sentences under a name, with {target} as the hole for a target."""

    resource = STEREOTYPE
    examples = ("archive --text 'FOR {target} WHEN OBJECT_TYPE = DOCS DO SET compression'",)


class SetStereotype(UpdateResource):
    """Change a stereotype; what is not named stays."""

    resource = STEREOTYPE
    examples = ("archive --help-text 'documents are kept'",)


class DeleteStereotype(DeleteResources):
    """Forget stereotypes."""

    resource = STEREOTYPE
    examples = ("archive",)


class ListApplied(ListCommand):
    """List the tenants and containers that a stereotype is applied to."""

    columns = registry.APPLIED_LIST
    arguments = (_STEREOTYPE,)
    examples = ("archive",)

    def fetch(self, args: Namespace) -> Iterable[Data]:
        """All of them."""
        return self.client.collection(STEREOTYPE.path + join_path(args.name, "tenants"), "targets").list()


class ApplyStereotype(ShowCommand):
    """Apply a stereotype to a tenant or a container: all of its sentences, or none."""

    columns = registry.APPLIED
    arguments = (_STEREOTYPE, Argument("target", "a tenant, or account/container", {"metavar": "TARGET"}), WAIT)
    examples = (
        "archive AUTH_acme --wait 10",
        "archive AUTH_acme/logs",
    )

    def fetch(self, args: Namespace) -> Data:
        """What it has set there."""
        return self.client.put(STEREOTYPE.path + join_path(args.name, "tenants", args.target), wait=args.wait)


class TakeBackStereotype(EachCommand):
    """Take back what a stereotype has set for targets."""

    names = "target"
    arguments = (_STEREOTYPE, names_argument("target", "a tenant, or account/container"))
    examples = ("archive AUTH_acme AUTH_acme/logs",)

    def each(self, name: str, args: Namespace) -> tuple[str, Any]:
        """Take back one."""
        self.client.delete(STEREOTYPE.path + join_path(args.name, "tenants", name))
        return f"stereotype {args.name} is taken back from {name}", None
