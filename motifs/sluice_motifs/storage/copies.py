"""Copies that a storage keeps for the runtime alone: what preserving items are made from while they are contracted.

A copy is named by the SHA-256 of its bytes, so whoever writes it, and whenever, writes the same.  Items refer to it: a
*reference* says that an item of a version may be made from the copy.  Both lie in the storage itself, and nothing that
is kept elsewhere decides whether a copy may go (``contraction.copies``).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from sluice_motifs.api import ExpansionError, SourceGone
from sluice_motifs.storage.records import ItemView, Plain


@dataclass(frozen=True, slots=True)
class CopyView:
    """A copy as it was found.

    :param age: seconds since its bytes were stored last
    :param version: changes each time they are
    """

    name: str
    age: float
    version: str


@dataclass(frozen=True, slots=True)
class Reference:
    """An item that may be made from a copy.

    :param version: when a client wrote the item, or its copy was begun
    :param age: seconds since it was added last
    :param stamp: changes each time it is added
    """

    copy: str
    item: str
    version: str
    age: float
    stamp: str


class Copies(Protocol):
    """The copies of a storage; all methods raise ``PeerError`` when it is away."""

    def name(self, item: str, placement: str, digest: str) -> str:
        """The name of the copy for an item.

        :param placement: as of ``TemplateCall.keep_copy``
        :param digest: SHA-256 of its bytes, in hexadecimal
        :raises ExpansionError: when the storage keeps no copies, or not there
        """

    def find(self, name: str) -> CopyView | None:
        """A copy as it is now; None when there is none."""

    def store(self, name: str, item: ItemView, plain: Plain, pieces: Iterator[bytes]) -> None:
        """Store the bytes of a copy for an item, or once more when they are there: it is young from then on.

        :param plain: size and MD5 of the bytes
        """

    def read(self, name: str) -> Iterator[bytes]:
        """The bytes of a copy.

        :raises SourceGone: when there is none
        """

    def refer(self, copy: str, item: str, seen: ItemView | None) -> None:
        """Note, before an item is contracted, that it may be made from a copy; the note outlives any one server.

        :param seen: the item; None for one that is going to be written
        """


class SweptCopies(Copies, Protocol):
    """Copies that are removed while the storage is used."""

    def scan(self) -> Iterator[CopyView]:
        """All copies, in any order; one that is being stored may be left out."""

    def delete(self, seen: CopyView) -> None:
        """Remove a copy; one that was stored again since it was seen stays."""

    def references(self, copy: str) -> Sequence[Reference]:
        """All references to a copy.

        :raises PeerError: unless they are known to be all
        """

    def outlived(self, reference: Reference) -> bool:
        """Whether it is proven that the item is not made from the copy any more.

        A later version is there that does not name it, or the item was deleted later; or all servers say that they
        have none, or one with its bytes that does not name the copy.
        """

    def drop(self, reference: Reference) -> None:
        """Remove a reference; one that was added again since it was seen stays."""


class NoCopies:
    """For storages that keep none; implements ``Copies``."""

    def name(self, item: str, placement: str, digest: str) -> str:
        raise ExpansionError("this storage keeps no copies of its items")

    def find(self, name: str) -> CopyView | None:
        return None

    def store(self, name: str, item: ItemView, plain: Plain, pieces: Iterator[bytes]) -> None:
        raise ExpansionError("this storage keeps no copies of its items")

    def read(self, name: str) -> Iterator[bytes]:
        raise SourceGone(name)

    def refer(self, copy: str, item: str, seen: ItemView | None) -> None:
        raise ExpansionError("this storage keeps no copies of its items")
