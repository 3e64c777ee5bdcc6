"""The runtime's interface to a storage and its cluster: a shim for Swift, a file system, a key-value store.

Each state that a shim writes is complete in itself: an item is whole, or contracted with all data that are needed to
make it.  So no data are lost, whichever of two writers is last.  A client's write wins against every decision that the
runtime made before it: the runtime's write is refused then, and it decides again.

A record belongs to one version of an item.  If it is stored in metadata that are carried over when a client changes
other metadata (a POST), it must name that version: otherwise it may be stored with an object that was written
meanwhile, whose bytes would then count as the old ones.

Only the runtime uses *copies*: it makes contracted preserving items from them.  A copy is named
by the SHA-256 of its bytes, so all writers write the same.  Items refer to it: a *reference* says that a version of an
item may be made from the copy.  Both are stored in the storage itself, and no data stored elsewhere decide whether a
copy may be removed (``contraction.copies``).
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
    """A copy as it was viewed.

    :param age: seconds since its bytes were stored last
    :param version: changes each time its bytes are stored
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
    """The copies of a storage; all methods raise ``PeerError`` when it is unreachable."""

    def name(self, item: str, placement: str, digest: str) -> str:
        """The name of the copy for an item.

        :param placement: as of ``TemplateCall.keep_copy``
        :param digest: SHA-256 of its bytes, in hexadecimal
        :raises ExpansionError: when the storage keeps no copies, or none in this place
        """

    def find(self, name: str) -> CopyView | None:
        """The copy as it is now; None if it does not exist."""

    def store(self, name: str, item: ItemView, plain: Plain, pieces: Iterator[bytes]) -> None:
        """Store the bytes of a copy for an item, even if they exist: it is young from then on.

        :param plain: size and MD5 of the bytes
        """

    def read(self, name: str) -> Iterator[bytes]:
        """The bytes of a copy.

        :raises SourceGone: when the copy does not exist
        """

    def refer(self, copy: str, item: str, seen: ItemView | None) -> None:
        """Record, before an item is contracted, that it may be made from a copy; the record outlives any one server.

        :param seen: the item; None for one that will be written
        """


class SweptCopies(Copies, Protocol):
    """Copies that can be removed while the storage is used."""

    def scan(self) -> Iterator[CopyView]:
        """All copies, in any order; one that is being stored may be missing."""

    def delete(self, seen: CopyView) -> None:
        """Remove a copy, unless it was stored again since it was viewed."""

    def references(self, copy: str) -> Sequence[Reference]:
        """All references to a copy.

        :raises PeerError: unless all of them are known
        """

    def outlived(self, reference: Reference) -> bool:
        """Whether it is proven that the item is no longer made from the copy.

        There is a later version that does not name it, or the item was deleted later; or all servers report that they
        have no such item, or one with its bytes that does not name the copy.
        """

    def drop(self, reference: Reference) -> None:
        """Remove a reference, unless it was added again since it was read."""


class NoCopies:
    """For storages without copies; implements ``Copies``."""

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
    """The views of a storage's items."""

    def view(self, name: str) -> ItemView | None:
        """The item as it is now, from the newest replica; None if it does not exist; an error if that is unknown."""

    def view_all(self, names: Sequence[str]) -> Sequence[ItemView | None]:
        """Several items, in the order of their names; each is viewed after the call has begun.

        They are viewed one after the other, unless a storage views several concurrently.
        """
        return [self.view(name) for name in names]


def find_item(views: Views, name: str, kind: str = "item") -> ItemView:
    """The item as it is now.

    :param kind: what the storage calls its items
    :raises NotFound: when the item does not exist
    """
    view = views.view(name)
    if view is None:
        raise NotFound(f"there is no {kind} `{name}`")
    return view


class ViewedOnce(Views):
    """Views of one decision: each item is viewed once, and the view is kept.

    A view costs requests to the storage, and a decision needs an item several times.

    :param seen: earlier views
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
        """As ``Views.view_all``, for items that were not viewed."""
        others = [name for name in names if name not in self._seen]
        self._seen.update(zip(others, self._views.view_all(others), strict=True))
        return [self._seen[name] for name in names]


class Shim(Views, Protocol):
    """A storage of items.  All methods may block, and raise ``PeerError`` when the storage is unreachable."""

    @property
    def copies(self) -> Copies:
        """The hidden copies; ``view`` finds one by its name."""

    @property
    def unhurried(self) -> Views:
        """Views for which no client waits: a storage may collect them, a moment later."""
        return self

    def scan(self) -> Iterator[ItemView]:
        """All items that have motifs, in any order; items that change meanwhile may be missing or old."""

    def read(self, name: str, reader: str, chain: tuple[str, ...], version: str = "") -> Iterator[bytes]:
        """The plain bytes of an item through the front door: contracted ones are expanded first.

        :param reader: the identity whose rights decide
        :param chain: the items whose expansions wait for this one, outermost first
        :param version: the required version, for a storage that keeps earlier ones; empty for the present one
        :raises SourceGone: when the item does not exist
        :raises ExpansionError: when it cannot be read now, or by this identity
        """

    def own_bytes(self, seen: ItemView) -> Iterator[bytes]:
        """The bytes of an item that is not contracted, below the front door.

        :raises ExpansionError: when it has other bytes than those of ``seen`` now
        """

    def annotate(self, seen: ItemView, record: Record) -> bool:
        """Replace the record of an item, without any other change.

        Return False when something newer than ``seen`` is stored, which stays.
        """

    def contract(self, seen: ItemView, record: Record) -> bool:
        """Replace ``seen`` by a contracted item with ``record``; all else that clients see stays.

        Return False when something newer than ``seen`` is stored, which stays.
        """

    def expand(self, seen: ItemView, record: Record, pieces: Iterator[bytes]) -> bool:
        """Store the bytes of a contracted item; version, digest and size stay.

        Errors of ``pieces`` are raised, and then no bytes are stored.  Return False when something newer is stored.
        """

    def replace(self, seen: ItemView, record: Record, pieces: Iterator[bytes]) -> bool:
        """Store other bytes as the new content of the item, with their size and digest, and a new version.

        Errors of ``pieces`` are raised, and then no bytes are stored.  Return False when something newer is stored.  A
        client's write that began after the one of ``seen`` is newer, also when it ends after this one.
        """


@dataclass(frozen=True, slots=True)
class Lease:
    """The right to change an item.

    :param token: greater than that of each earlier lease of the item; 0 belongs to no lease, and counts as expired
    """

    item: str
    token: int


class Leases(Protocol):
    """Leases of items in the whole cluster; methods raise ``PeerError`` when the leases cannot be known.

    They save expansions double work, which also run without.  Contractions of items that are made from each other need
    them: after a loss of leases (a lost Redis) none is granted before those that may have been granted have expired.
    """

    def acquire(self, item: str) -> Lease | None:
        """Acquire a lease of the item; return None while another one is valid.

        It expires after some seconds unless it is renewed.
        """

    def renew(self, lease: Lease) -> bool:
        """Renew a lease; return False when it has expired, and another process may have one."""

    def release(self, *leases: Lease) -> None:
        """Release leases; expired ones are ignored."""


class Derivations(Protocol):
    """The items that are derived from a source, as far as known: correctness does not depend on them."""

    def find(self, sources: Sequence[str]) -> Sequence[Sequence[str]]:
        """For each of ``sources`` the items that are derived from it, or once were."""

    def remove(self, source: str, items: Sequence[str]) -> None:
        """Remove items that are not derived from a source."""
