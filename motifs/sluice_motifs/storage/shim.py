"""What the runtime asks of a storage and of the cluster around it: a shim for Swift, a file system, a key-value store.

Each state that a shim writes is complete in itself: an item is whole, or contracted with all that is needed to make it
again.  So whichever of two writers comes last, nothing is lost.  A client's own write wins against everything that the
runtime judged before it: the write of the runtime is refused then, and the item is judged anew.

A record belongs to one version of an item.  Where it lies in metadata that are carried over when a client changes
others (a POST), it must name that version: else it may come upon an object that was written meanwhile, whose bytes
would then be taken for old ones.

*Copies* are kept for the runtime alone: preserving items are made from them while they are contracted.  A copy is named
by the SHA-256 of its bytes, so all writers write the same.  Items refer to it: a *reference* says that an item of a
version may be made from the copy.  Both lie in the storage itself, and nothing that is kept elsewhere decides whether a
copy may go (``contraction.copies``).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from sluice_core.errors import NotFound
from sluice_motifs.api import ExpansionError, SourceGone
from sluice_motifs.storage.records import ItemView, Plain, Record


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


class Views(Protocol):
    """What can be seen of a storage."""

    def view(self, name: str) -> ItemView | None:
        """The item as it is now, from the newest copy; None when there is none, and not when that is unknown."""

    def view_all(self, names: Sequence[str]) -> Sequence[ItemView | None]:
        """Several items, in the order of their names; each is looked at after the call has begun.

        One behind the other, unless a storage looks at several at once.
        """
        return [self.view(name) for name in names]


def find_item(views: Views, name: str, kind: str = "item") -> ItemView:
    """The item as it is now.

    :param kind: what the storage calls its items
    :raises NotFound: when there is none
    """
    view = views.view(name)
    if view is None:
        raise NotFound(f"there is no {kind} `{name}`")
    return view


class ViewedOnce(Views):
    """Views of one decision: each item is looked at once, and what was seen is kept.

    A storage pays for each look, and a decision asks for an item several times.

    :param seen: what was looked at before
    """

    def __init__(self, views: Views, *seen: ItemView) -> None:
        self._views = views
        self._seen: dict[str, ItemView | None] = {one.name: one for one in seen}

    def view(self, name: str) -> ItemView | None:
        """As ``Views.view``, the first time."""
        if name not in self._seen:
            self._seen[name] = self._views.view(name)
        return self._seen[name]

    def view_all(self, names: Sequence[str]) -> Sequence[ItemView | None]:
        """As ``Views.view_all``, of those that were not looked at."""
        others = [name for name in names if name not in self._seen]
        self._seen.update(zip(others, self._views.view_all(others), strict=True))
        return [self._seen[name] for name in names]


class Shim(Views, Protocol):
    """A storage of items.  All methods may block, and raise ``PeerError`` when the storage is away."""

    @property
    def copies(self) -> Copies:
        """Copies that are kept for the runtime alone; ``view`` finds one by its name."""

    @property
    def unhurried(self) -> Views:
        """Views for which no client waits: a storage may look at many items together, a moment later."""
        return self

    def scan(self) -> Iterator[ItemView]:
        """All items that have motifs, in any order; what changes meanwhile may be left out or be old."""

    def read(self, name: str, reader: str, chain: tuple[str, ...], version: str = "") -> Iterator[bytes]:
        """The plain bytes of an item through the front door: contracted ones are expanded first.

        :param reader: the identity whose rights decide
        :param chain: the items whose expansions wait for this one, outermost first
        :param version: that which is needed, for a storage that keeps earlier ones; empty for that which is there
        :raises SourceGone: when there is no such item
        :raises ExpansionError: when it cannot be read now, or by this identity
        """

    def own_bytes(self, seen: ItemView) -> Iterator[bytes]:
        """The bytes of an item that is not contracted, below the front door.

        :raises ExpansionError: when other bytes than those of ``seen`` are there now
        """

    def annotate(self, seen: ItemView, record: Record) -> bool:
        """Keep another record with an item, and leave the rest as it is.

        False when something newer than ``seen`` is there, which stays.
        """

    def contract(self, seen: ItemView, record: Record) -> bool:
        """Put a contracted item with ``record`` in the place of ``seen``, and keep all else that clients see.

        False when something newer than ``seen`` is there, which stays.
        """

    def expand(self, seen: ItemView, record: Record, pieces: Iterator[bytes]) -> bool:
        """Put the bytes of a contracted item in their place again; the same version, digest and size.

        What ``pieces`` raises is raised, and then nothing is stored.  False when something newer is there.
        """

    def replace(self, seen: ItemView, record: Record, pieces: Iterator[bytes]) -> bool:
        """Make other bytes the new content of the item: size and digest are theirs, its version is a new one.

        What ``pieces`` raises is raised, and then nothing is stored.  False when something newer is there.  A client's
        write that began after the one of ``seen`` is newer, also when it ends after this one.
        """


@dataclass(frozen=True, slots=True)
class Lease:
    """The right to work at an item.

    :param token: greater than that of each earlier lease of the item; 0 is of none, and always over
    """

    item: str
    token: int


class Leases(Protocol):
    """Leases of items in the whole cluster; they raise ``PeerError`` when those cannot be known.

    Expansions save work by them, and go on without.  Contractions of items that are made from each other need them:
    what forgets its leases (a lost Redis) grants none before those that it may have granted have ended.
    """

    def acquire(self, item: str) -> Lease | None:
        """A lease of the item; None while another one holds.

        It ends by itself after some seconds unless it is renewed.
        """

    def renew(self, lease: Lease) -> bool:
        """Renew a lease; False when it has ended, and another process may have one."""

    def release(self, *leases: Lease) -> None:
        """Release leases; those that have ended are left alone."""


class Derivations(Protocol):
    """Which items are derived from a source, as far as is known: nothing that must hold rests on it."""

    def find(self, sources: Sequence[str]) -> Sequence[Sequence[str]]:
        """For each of ``sources`` the items that are derived from it, or were."""

    def remove(self, source: str, items: Sequence[str]) -> None:
        """These are not."""
