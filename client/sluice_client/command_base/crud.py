"""The list, show, create, set and delete commands of a resource, from a description of the resource.

A new resource is a :class:`Resource`, and for each command that it has a class of two lines::

    class ShowTerm(crud.ShowResource, resource=TERM):  # with a docstring, which is the command's help
        examples = ("DOCS",)
"""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar

from sluice_client.command_base.arguments import Argument, names_argument
from sluice_client.command_base.command import ListCommand, ShowCommand, SluiceCommand
from sluice_client.command_base.each import EachCommand
from sluice_client.errors import ClientError
from sluice_client.resources.columns import Column, Data
from sluice_client.rest.collection import Collection

Arguments = tuple[Argument, ...]


@dataclass(frozen=True)
class Resource:
    """A REST resource: its ``noun``, its ``path``, and the field ``name`` of a page, as in :class:`Collection`.

    ``key`` is the field that identifies an item.  ``filters`` narrow a list; ``fields`` are the options of create and
    set, each named like its field.  The other options belong to one command each.
    """

    noun: str
    path: str
    listed: tuple[Column, ...]
    shown: tuple[Column, ...] = ()
    key: str = "name"
    filters: Arguments = ()
    fields: Arguments = ()
    set_options: Arguments = ()
    delete_options: Arguments = ()
    upload_options: Arguments = ()
    stop_options: Arguments = ()
    name: str = ""

    def argument(self, text: str = "") -> Argument:
        """The argument that identifies an item.

        :param text: its help; empty: the noun
        """
        return Argument(self.key, text or f"the {self.noun}", {"metavar": self.key.upper()})


def given_values(arguments: Arguments, args: Namespace) -> dict[str, Any]:
    """Return the values of those ``arguments`` that are on the command line."""
    values = {argument.dest: getattr(args, argument.dest) for argument in arguments}
    return {name: value for name, value in values.items() if value is not None}


class ResourceCommand(SluiceCommand):
    """A command of one resource, which is a parameter of its class.

    It accepts the item's key, the options that the resource has for it, and its own ``arguments``.
    """

    resource: ClassVar[Resource]
    #: help of the argument for the key; empty: the noun
    key_help: ClassVar[str] = ""

    def __init_subclass__(cls, resource: Resource | None = None, **options: Any) -> None:
        if resource is not None:
            cls.resource = resource
            cls.arguments = (*cls.key_arguments(), *cls.options(), *cls.arguments)
        super().__init_subclass__(**options)

    @classmethod
    def key_arguments(cls) -> Arguments:
        """The arguments that identify the item."""
        return (cls.resource.argument(cls.key_help),)

    @classmethod
    def options(cls) -> Arguments:
        """The resource's options for this command."""
        return ()

    @property
    def collection(self) -> Collection:
        """The REST collection of the resource."""
        return self.client.collection(self.resource.path, self.resource.name)

    def key(self, args: Namespace) -> str:
        """The item's key on the command line."""
        return str(getattr(args, self.resource.key))


class ListResources(ResourceCommand, ListCommand):
    """Lists the items."""

    def __init_subclass__(cls, resource: Resource | None = None, **options: Any) -> None:
        if resource is not None:
            cls.columns = resource.listed
        super().__init_subclass__(resource, **options)

    @classmethod
    def key_arguments(cls) -> Arguments:
        """No key, but filters: the command applies to all items."""
        return cls.resource.filters

    def fetch(self, args: Namespace) -> Iterable[Data]:
        """The items that match the filters."""
        return self.collection.list(**given_values(self.resource.filters, args))


class ShowResource(ResourceCommand, ShowCommand):
    """Shows one item."""

    def __init_subclass__(cls, resource: Resource | None = None, **options: Any) -> None:
        if resource is not None:
            cls.columns = resource.shown
        super().__init_subclass__(resource, **options)

    def fetch(self, args: Namespace) -> Data:
        """The item."""
        return self.collection.get(self.key(args))


class CreateResource(ShowResource):
    """Creates an item."""

    @classmethod
    def options(cls) -> Arguments:
        """The fields."""
        return cls.resource.fields

    def fetch(self, args: Namespace) -> Data:
        """The new item."""
        return self.collection.create({self.resource.key: self.key(args)} | self.values(args))

    def values(self, args: Namespace) -> dict[str, Any]:
        """The fields that are on the command line."""
        return given_values(self.resource.fields, args)


class UpdateResource(CreateResource):
    """Changes some fields of an item."""

    @classmethod
    def options(cls) -> Arguments:
        """The fields, and the options of set."""
        return (*cls.resource.fields, *cls.resource.set_options)

    def fetch(self, args: Namespace) -> Data:
        """The changed item; refused (412) when another request changed it at the same time."""
        changes = self.values(args)
        if not changes:
            raise ClientError("nothing is to be changed, expected an option that says what")
        found, etag = self.collection.get_with_etag(self.key(args))
        options = given_values(self.resource.set_options, args)
        return self.collection.update(self.key(args), self.unchanged(found) | changes, etag, **options)

    def unchanged(self, found: Data) -> dict[str, Any]:
        """Present fields of the item that the controller needs with every change."""
        return {}


class EachResource(ResourceCommand, EachCommand):
    """Acts on each of several items."""

    @classmethod
    def key_arguments(cls) -> Arguments:
        """The argument for all their names."""
        return (names_argument(cls.resource.key, cls.key_help or f"the {cls.resource.noun}"),)


class DeleteResources(EachResource):
    """Deletes items."""

    def __init_subclass__(cls, resource: Resource | None = None, **options: Any) -> None:
        if resource is not None:
            cls.asks = f"delete {resource.noun} {{{resource.key}}}"
        super().__init_subclass__(resource, **options)

    @classmethod
    def options(cls) -> Arguments:
        """The options of delete."""
        return cls.resource.delete_options

    def each(self, name: str, args: Namespace) -> tuple[str, Any]:
        """Delete one item."""
        self.collection.delete(name, **given_values(self.resource.delete_options, args))
        return f"{self.resource.noun} {name} is deleted", None
