"""The list, show, create, set and delete commands of a resource, made from a description of the resource.

A new resource is a :class:`Resource`, and for each command that it has a class of two lines::

    class ListTerms(ListResources):
        resource = TERM  # and a docstring, which is the command's help
"""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar

from sluice_client.command_base.command import (
    Argument,
    EachCommand,
    ListCommand,
    ShowCommand,
    SluiceCommand,
    names_argument,
)
from sluice_client.errors import ClientError
from sluice_client.resources.columns import Column, Data
from sluice_client.rest.collection import Collection


@dataclass(frozen=True)
class Resource:
    """A REST resource: its ``noun``, its ``path``, and the field ``name`` that holds the items of a page.

    ``key`` is the field that identifies an item.  ``filters`` narrow a list; ``fields`` are the options of create and
    set, each named like its field.
    """

    noun: str
    path: str
    name: str
    listed: tuple[Column, ...]
    shown: tuple[Column, ...] = ()
    key: str = "name"
    filters: tuple[Argument, ...] = ()
    fields: tuple[Argument, ...] = ()
    #: help of ``--force`` for delete and for set; empty without that option
    force: str = ""
    force_set: str = ""

    def argument(self) -> Argument:
        """The argument that identifies an item."""
        return Argument(self.key, f"the {self.noun}", {"metavar": self.key.upper()})

    def values(self, arguments: tuple[Argument, ...], args: Namespace) -> dict[str, Any]:
        """The values of those ``arguments`` that are on the command line."""
        values = {argument.dest: getattr(args, argument.dest) for argument in arguments}
        return {name: value for name, value in values.items() if value is not None}


def _forced(text: str) -> tuple[Argument, ...]:
    return (Argument("--force", text, {"action": "store_true"}),) if text else ()


def _force(args: Namespace) -> str:
    return "true" if getattr(args, "force", False) else ""


class ResourceCommand(SluiceCommand):
    """A command of one resource."""

    resource: ClassVar[Resource]

    @property
    def collection(self) -> Collection:
        """The REST collection of the resource."""
        return self.client.collection(self.resource.path, self.resource.name)

    def key(self, args: Namespace) -> str:
        """The item's key on the command line."""
        return str(getattr(args, self.resource.key))


class ListResources(ResourceCommand, ListCommand):
    """Lists the items."""

    def __init_subclass__(cls) -> None:
        cls.columns, cls.arguments = cls.resource.listed, cls.resource.filters

    def fetch(self, args: Namespace) -> Iterable[Data]:
        """The items that match the filters."""
        return self.collection.list(**self.resource.values(self.resource.filters, args))


class ShowResource(ResourceCommand, ShowCommand):
    """Shows one item."""

    def __init_subclass__(cls) -> None:
        cls.columns, cls.arguments = cls.resource.shown, (cls.resource.argument(),)

    def fetch(self, args: Namespace) -> Data:
        """The item."""
        return self.collection.get(self.key(args))


class CreateResource(ResourceCommand, ShowCommand):
    """Creates an item."""

    def __init_subclass__(cls) -> None:
        cls.columns, cls.arguments = cls.resource.shown, (cls.resource.argument(), *cls.resource.fields)

    def fetch(self, args: Namespace) -> Data:
        """The new item."""
        named = {self.resource.key: self.key(args)}
        return self.collection.create(named | self.resource.values(self.resource.fields, args))


class UpdateResource(ResourceCommand, ShowCommand):
    """Changes some fields of an item."""

    def __init_subclass__(cls) -> None:
        resource = cls.resource
        cls.columns = resource.shown
        cls.arguments = (resource.argument(), *resource.fields, *_forced(resource.force_set))

    def fetch(self, args: Namespace) -> Data:
        """The changed item; refused (412) when somebody else changed it at the same time."""
        changes = self.resource.values(self.resource.fields, args)
        if not changes:
            raise ClientError("nothing is to be changed, expected an option that says what")
        _, etag = self.collection.get_with_etag(self.key(args))
        return self.collection.update(self.key(args), changes, etag, force=_force(args))


class DeleteResources(ResourceCommand, EachCommand):
    """Deletes items."""

    def __init_subclass__(cls) -> None:
        cls.names = cls.resource.key
        cls.arguments = (names_argument(cls.resource.key, f"the {cls.resource.noun}"), *_forced(cls.resource.force))

    def each(self, name: str, args: Namespace) -> tuple[str, Any]:
        """Delete one item."""
        self.collection.delete(name, force=_force(args))
        return f"{self.resource.noun} {name} is deleted", None
