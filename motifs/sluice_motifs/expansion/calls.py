"""The arguments of a template: its item and its sources through the front door; and checks of the bytes it makes."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from typing import Final

from sluice_core.errors import PeerError
from sluice_motifs.api import PRESERVING, ExpansionError, Template, contained
from sluice_motifs.dependencies.availability import DEEPEST
from sluice_motifs.storage.records import ItemView, Motif
from sluice_motifs.storage.shim import Shim

#: Why made bytes are not accepted.
OTHER_BYTES: Final = "other bytes than it had were made"
#: The most bytes of a motif that need not be exact: the largest object of Swift.
MOST_BYTES: Final = 5 << 30


def proven(pieces: Iterator[bytes], view: ItemView) -> Iterator[bytes]:
    """``pieces``, the last one only if all together have the size and the digest of the item.

    :raises ExpansionError: when they do not
    """
    plain = view.plain
    digest = hashlib.new(plain.algorithm, usedforsecurity=False)
    size, held = 0, b""
    for piece in pieces:
        size += len(piece)
        if size > plain.size:
            raise ExpansionError(f"more than the {plain.size} bytes that it had were made")
        digest.update(piece)
        if size < plain.size:
            yield piece
        else:
            held = piece
    if size < plain.size:
        raise ExpansionError(f"{size} bytes were made, expected {plain.size}")
    if digest.hexdigest() != plain.digest:
        raise ExpansionError(OTHER_BYTES)
    if held:
        yield held


def bounded(pieces: Iterator[bytes]) -> Iterator[bytes]:
    """``pieces``, as long as they are not larger than an item may be.

    :raises ExpansionError: when they are larger
    """
    size = 0
    for piece in pieces:
        size += len(piece)
        if size > MOST_BYTES:
            raise ExpansionError(f"more than {MOST_BYTES} bytes were made")
        yield piece


#: Stores a copy for an item, in a placement, from pieces; returns the name of the copy.
Keep = Callable[[ItemView, str, Iterator[bytes]], str]


class Call:
    """One expansion or contraction; implements ``TemplateCall``.

    :param chain: the items whose expansions wait for these reads, outermost first
    :param alive: called on each progress: renews a lease, raises ``ExpansionError`` to end the expansion
    :param keep: stores a copy, in a call before a contraction
    """

    def __init__(
        self,
        shim: Shim,
        view: ItemView,
        template: Template,
        motif: Motif,
        chain: tuple[str, ...],
        alive: Callable[[], None] = lambda: None,
        keep: Keep | None = None,
    ) -> None:
        self._keep = keep
        self._shim = shim
        self._view = view
        sources = [one for one in template.sources(view.name) if not one.external]
        self._named = {one.name for one in sources}
        self._owned = {one.name for one in sources if one.owned}
        # an item that was contracted before copies were kept relies on the version that its source had then
        self._stands_on_source = template.relation == PRESERVING and view.contracted
        self._motif = motif
        self._chain = chain
        self._alive = alive

    @property
    def item(self) -> str:
        return self._view.name

    @property
    def size(self) -> int:
        return self._view.plain.size

    @property
    def digest(self) -> str:
        plain = self._view.plain
        return f"{plain.algorithm}:{plain.digest}" if plain.digest else ""

    @property
    def identity(self) -> str:
        return self._motif.identity

    def read(self, source: str) -> Iterator[bytes]:
        if source not in self._named:
            raise ExpansionError(f"template `{self._motif.template}` reads `{source}`, which is none of its sources")
        if source in self._chain:
            raise ExpansionError(f"`{source}` would be needed to make itself")
        if len(self._chain) > DEEPEST:
            raise ExpansionError(f"more than {DEEPEST} items would be made one from the other")
        try:
            for piece in self._read(source):
                self._alive()
                yield piece
        except PeerError as error:
            raise ExpansionError(f"`{source}` cannot be read: {error}") from error

    def own_bytes(self) -> Iterator[bytes]:
        for piece in proven(self._shim.own_bytes(self._view), self._view):
            self._alive()
            yield piece

    def keep_copy(self, placement: str = "", pieces: Iterator[bytes] | None = None) -> str:
        if self._keep is None:
            raise ExpansionError("copies are kept before bytes go, and never else")
        try:
            return self._keep(self._view, placement, self.own_bytes() if pieces is None else pieces)
        except PeerError as error:
            raise ExpansionError(f"no copy can be kept: {error}") from error

    def check(self) -> None:
        self._alive()

    def _read(self, source: str) -> Iterator[bytes]:
        if source in self._owned:
            return self._shim.copies.read(source)
        version = self._view.record.made_from.get(source, "") if self._stands_on_source else ""
        return self._shim.read(source, self._motif.identity, self._chain, version)


def pieces_of(template: Template, call: Call, motif: Motif) -> Iterator[bytes]:
    """The pieces that ``expand`` yields."""
    with contained(motif.template):
        for piece in template.expand(call):
            if not isinstance(piece, bytes | bytearray | memoryview):
                raise ExpansionError(f"the template made a piece of type `{type(piece).__name__}`, expected bytes")
            if piece:
                yield bytes(piece)
