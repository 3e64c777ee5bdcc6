"""Stores the copies from which preserving items are made, shares them, and removes those that no item needs.

Theory of operation.  Neither leases nor any data in Redis protect a copy; three rules do, with one span of time, the
*grace*, which is far longer than the difference of any two clocks.

* A contraction relies on a copy only when it is younger than half of the grace, and stores its bytes again
  otherwise.  Then it adds a reference, and contracts within a quarter of the grace (:attr:`CopyKeeper.valid`).
* The sweeper removes only copies that are older than the grace and without a reference, and only the version that it
  saw: a copy that was stored again meanwhile stays.
* It drops a reference only when that is older than the grace, too, and the storage proves that the item is not made
  from the copy (``SweptCopies.outlived``).

So a contraction that begins after the sweeper's check finds an old copy and renews it; one that began before has
added its reference, or fails.  An item that was contracted with a copy has a reference as long as it has the same
version, so it may be contracted to that copy again, whatever its age.

An item and its duplicate, or a file and its compressed form, save no space while one of them has its bytes beside the
copy.  So when one was contracted, the other gets the template that only keeps a copy, and is contracted with it.
"""

from __future__ import annotations

import hashlib
import logging
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import IO, Final

from sluice_core.errors import SluiceError
from sluice_motifs.api import COPY, TIER
from sluice_motifs.dependencies.freshness import Templates
from sluice_motifs.storage.records import MOST_MOTIFS, ItemView, Motif, Plain
from sluice_motifs.storage.shim import Copies, CopyView, Shim, SweptCopies

log = logging.getLogger(__name__)

#: Whether the identity that attached a motif may have another item contracted.
MayShare = Callable[[Motif, str], bool]

#: Seconds for which an unneeded copy or reference stays.
GRACE: Final = 3600.0
#: Bytes of a copy that are buffered in memory until its name is known.
_IN_MEMORY: Final = 8 << 20
_PIECE: Final = 256 << 10
#: The placement of a shared copy: that of the item itself.
_HERE: Final = ""


class CopyKeeper:
    """Ensures that there are copies on which contractions can rely.

    :param grace: that of the sweeper, in seconds
    """

    def __init__(self, copies: Copies, grace: float = GRACE) -> None:
        self._copies = copies
        self._grace = grace

    @property
    def valid(self) -> float:
        """Seconds after the start of :meth:`keep` within which the item must be contracted."""
        return self._grace / 4

    def keep(self, seen: ItemView, placement: str, pieces: Iterator[bytes]) -> str:
        """Store ``pieces``; return the name of the copy, which is young.

        Errors of ``pieces`` are raised, and then no copy is stored.
        """
        with tempfile.SpooledTemporaryFile(_IN_MEMORY) as spool:
            digest, etag, size = hashlib.sha256(), hashlib.md5(usedforsecurity=False), 0
            for piece in pieces:
                digest.update(piece)
                etag.update(piece)
                size += len(piece)
                spool.write(piece)
            name = self._copies.name(seen.name, placement, digest.hexdigest())
            if not self.is_young(name):
                spool.seek(0)
                self._copies.store(name, seen, Plain("", size, etag.hexdigest()), _pieces(spool))
        return name

    def is_young(self, name: str) -> bool:
        """Whether a contraction may rely on a copy that has no reference of its item yet."""
        found = self._copies.find(name)
        return found is not None and found.age < self._grace / 2


class CopySweeper:
    """Removes copies that no item needs; several sweepers may run concurrently."""

    def __init__(self, copies: SweptCopies, grace: float = GRACE) -> None:
        self._copies = copies
        self._grace = grace

    def sweep(self, alive: Callable[[], None] = lambda: None) -> int:
        """Remove outlived references, and copies that had no reference; return the number of these copies.

        :param alive: called for each copy; raises an error to end the sweep
        :raises PeerError: when the storage is unreachable, or does not return all references
        """
        removed = 0
        for copy in self._copies.scan():
            alive()
            if copy.age >= self._grace:
                removed += self._remove(copy)
        return removed

    def _remove(self, copy: CopyView) -> bool:
        references = self._copies.references(copy.name)
        if not references:
            self._copies.delete(copy)
            return True
        for one in references:
            if one.age >= self._grace and self._copies.outlived(one):
                self._copies.drop(one)
        return False  # the next sweep checks again


def _pieces(spool: IO[bytes]) -> Iterator[bytes]:
    while piece := spool.read(_PIECE):
        yield piece


@dataclass(eq=False)
class CopySharing:
    """Contracts a second item to a copy that was kept for a first one.

    :param attach: attaches a motif to an item
    :param contract: contracts an item
    """

    shim: Shim
    templates: Templates
    attach: Callable[[str, Motif], object]
    contract: Callable[[str], object]
    may_share: MayShare

    def concerns(self, view: ItemView) -> bool:
        """Whether another item may have the bytes of a copy of ``view``."""
        try:
            return any(COPY in motif.params and self._other(motif) for motif in view.record.motifs)
        except SluiceError:
            return False

    def share(self, name: str) -> None:
        """Contract the item with the bytes of the copies of a contracted item, if possible."""
        try:
            view = self.shim.view(name)
            for motif in view.record.motifs if view is not None and view.contracted else ():
                other = self._other(motif) if COPY in motif.params else ""
                if other and TIER in self.templates and self.may_share(motif, other):
                    self._give_up(other, str(motif.params[COPY]), motif.identity)
        except SluiceError as error:
            log.info("what has the same bytes as the copy of `%s` keeps them: %s", name, error)

    def _other(self, motif: Motif) -> str:
        kind = self.templates.get(motif.template)
        return "" if kind is None else kind(motif.params).shares_copy_with()

    def _give_up(self, name: str, copy: str, identity: str) -> None:
        seen, kept = self.shim.view(name), self.shim.view(copy)
        if seen is None or kept is None or seen.contracted or seen.pinned or not _same_bytes(seen, kept):
            return
        motifs = seen.record.motifs
        if any(COPY in one.params for one in motifs):
            return  # it was expanded since, so a client reads it
        if all(one.template != TIER for one in motifs) and len(motifs) < MOST_MOTIFS:
            self.attach(name, Motif(TIER, {"policy": _HERE}, identity))
            self.contract(name)


def _same_bytes(view: ItemView, other: ItemView) -> bool:
    """Whether size and digest are equal; the copy is named by a stronger digest, which decides."""
    if not view.plain.digest:
        return view.plain.size == other.plain.size
    return view.plain.size == other.plain.size and (view.plain.algorithm, view.plain.digest) == (
        other.plain.algorithm,
        other.plain.digest,
    )
