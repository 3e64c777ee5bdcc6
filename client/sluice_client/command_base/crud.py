"""The five commands that most resources have, made from a description of the resource.

A new resource is a :class:`Resource`, and for each command that it has a class of two lines::

    class ListTerms(ListAll):
        resource = TERM  # and a docstring, which is the command's help
"""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar

from sluice_client.command_base.command import Argument, EachCommand, ListCommand, ShowCommand, SluiceCommand, several
from sluice_client.errors import ClientError
from sluice_client.resources.columns import Column, Data
from sluice_client.rest.collection import Collection


@dataclass(frozen=True)
class Resource:
    """A kind of thing: its ``noun``, its ``path``, and the ``name`` under which an answer lists it.

    ``key`` is the field that names one.  ``filters`` narrow a list; ``fields`` are what can be said when
    one is created or changed: the word of each option is the field's.
    """

    noun: str
    path: str
    name: str
    listed: tuple[Column, ...]
    shown: tuple[Column, ...] = ()
    key: str = "name"
    filters: tuple[Argument, ...] = ()
    fields: tuple[Argument, ...] = ()
    #: what ``--force`` means when one is deleted, and when one is changed; empty when there is no such thing
    force: str = ""
    force_set: str = ""

    def argument(self) -> Argument:
        """The argument that names one of them."""
        return Argument(self.key, f"the {self.noun}", {"metavar": self.key.upper()})

    def given(self, arguments: tuple[Argument, ...], given: Namespace) -> dict[str, Any]:
        """What the command line says of ``arguments``."""
        found = {one.dest: getattr(given, one.dest) for one in arguments}
        return {name: value for name, value in found.items() if value is not None}


def _forced(text: str) -> tuple[Argument, ...]:
    return (Argument("--force", text, {"action": "store_true"}),) if text else ()


def _force(given: Namespace) -> str:
    return "true" if getattr(given, "force", False) else ""


class Standard(SluiceCommand):
    """A command of a resource."""

    resource: ClassVar[Resource]

    @property
    def things(self) -> Collection:
        """Where they are."""
        return self.client.collection(self.resource.path, self.resource.name)

    def key(self, given: Namespace) -> str:
        """The name on the command line."""
        return str(getattr(given, self.resource.key))


class ListAll(Standard, ListCommand):
    """Lists all of them."""

    def __init_subclass__(cls) -> None:
        cls.columns, cls.arguments = cls.resource.listed, cls.resource.filters

    def fetch(self, given: Namespace) -> Iterable[Data]:
        """All that fit."""
        return self.things.all(**self.resource.given(self.resource.filters, given))


class ShowIt(Standard, ShowCommand):
    """Shows one."""

    def __init_subclass__(cls) -> None:
        cls.columns, cls.arguments = cls.resource.shown, (cls.resource.argument(),)

    def fetch(self, given: Namespace) -> Data:
        """The one that is named."""
        return self.things.one(self.key(given))


class CreateIt(Standard, ShowCommand):
    """Creates one."""

    def __init_subclass__(cls) -> None:
        cls.columns, cls.arguments = cls.resource.shown, (cls.resource.argument(), *cls.resource.fields)

    def fetch(self, given: Namespace) -> Data:
        """The new one."""
        named = {self.resource.key: self.key(given)}
        return self.things.create(named | self.resource.given(self.resource.fields, given))


class SetIt(Standard, ShowCommand):
    """Changes one; what is not named stays."""

    def __init_subclass__(cls) -> None:
        resource = cls.resource
        cls.columns = resource.shown
        cls.arguments = (resource.argument(), *resource.fields, *_forced(resource.force_set))

    def fetch(self, given: Namespace) -> Data:
        """The one with its changes, unless somebody else changed it at the same time."""
        changes = self.resource.given(self.resource.fields, given)
        if not changes:
            raise ClientError("nothing is to be changed, expected an option that says what")
        _, etag = self.things.one_and_etag(self.key(given))
        return self.things.update(self.key(given), changes, etag, force=_force(given))


class DeleteThem(Standard, EachCommand):
    """Deletes some."""

    def __init_subclass__(cls) -> None:
        cls.names = cls.resource.key
        cls.arguments = (several(cls.resource.key, f"the {cls.resource.noun}"), *_forced(cls.resource.force))

    def each(self, name: str, given: Namespace) -> tuple[str, Any]:
        """Delete one."""
        self.things.delete(name, force=_force(given))
        return f"{self.resource.noun} {name} is deleted", None
