"""Making the bytes of an item again.

The motifs of the item are tried in the order that ``choose`` gives, the cheapest first, until one makes it.

* While the versions of its sources are those that its bytes were made from, the bytes must be the same: size and digest
  decide.  The last piece is held back until they are right, so nobody takes wrong bytes for whole ones, and the storage
  gets none of them.
* When a source has changed, or no motif of the item is exact, other bytes are its new content (``Shim.replace``).
* Versions of sources are noted before they are read.  A source that changes while it is read leaves a note that is older
  than the bytes, so that the item counts as out of date the next time: once too often rather than never.
* Another motif is tried as long as no byte was passed on, and after that nothing is.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Callable, Iterator, Sequence

from sluice_core.errors import SluiceError
from sluice_motifs.api import ExpansionError, Template
from sluice_motifs.calls import Call
from sluice_motifs.freshness import dependencies, differs
from sluice_motifs.graph import Templates
from sluice_motifs.records import ItemView, Motif, Record
from sluice_motifs.shim import Shim
from sluice_motifs.stream import SharedStream

log = logging.getLogger(__name__)

#: Puts the motifs of an item into the order in which they are tried.
Choice = Callable[[ItemView], Sequence[Motif]]


class Expander:
    """Expands items; its caller holds their leases."""

    def __init__(self, shim: Shim, templates: Templates, choose: Choice = lambda view: view.record.motifs) -> None:
        self._shim = shim
        self._templates = templates
        self._choose = choose

    def expand(
        self,
        view: ItemView,
        began: str,
        stream: SharedStream,
        chain: tuple[str, ...] = (),
        alive: Callable[[], None] = lambda: None,
    ) -> bool:
        """Make the bytes of ``view``, for the readers of ``stream`` and into their place.

        :param began: ``Shim.now`` from before ``view`` was looked at
        :param alive: called for each piece, to keep the lease
        :return: whether they are stored; False when somebody wrote the item meanwhile
        :raises ExpansionError: when no motif makes it, with the reason of each; readers are told the same
        """
        now = dependencies(self._shim, view, self._templates)
        stale = differs(view.record.made_from, now)
        record = Record(view.record.motifs, {**view.record.made_from, **now})
        failures: list[str] = []
        for motif in self._choose(view):
            try:
                template = self._template(motif)
                pieces = template.expand(Call(self._shim, view, template, motif, chain, alive))
                if template.exact and not stale:
                    stored = self._shim.expand(view, record, _passed_on(proven(pieces, view), stream, alive))
                else:
                    stored = self._shim.replace(view, record, _passed_on(pieces, stream, alive), began)
                if not stream.complete:
                    stream.fail(ExpansionError(f"`{view.name}` was written by somebody else"))
                return stored
            except ExpansionError as error:
                failures.append(f"`{motif.template}`: {error}")
            except SluiceError as error:
                stream.fail(ExpansionError(f"`{view.name}` cannot be stored: {error}"))
                raise
            if stream.length:
                break
        failure = ExpansionError(f"`{view.name}` cannot be made again: {'; '.join(failures) or 'it has no motif'}")
        stream.fail(failure)
        raise failure

    def prove(self, view: ItemView) -> None:
        """Make the bytes of an item that is there, and compare.

        :raises ExpansionError: when no motif makes the very same bytes
        """
        failures: list[str] = []
        for motif in view.record.motifs:
            try:
                template = self._template(motif)
                for _ in proven(template.expand(Call(self._shim, view, template, motif, ())), view):
                    pass
            except ExpansionError as error:
                failures.append(f"`{motif.template}`: {error}")
            else:
                return
        raise ExpansionError(f"`{view.name}` cannot be made again: {'; '.join(failures) or 'it has no motif'}")

    def _template(self, motif: Motif) -> Template:
        template = self._templates.get(motif.template)
        if template is None:
            raise ExpansionError("no such template is installed")
        return template(motif.params)


def proven(pieces: Iterator[bytes], view: ItemView) -> Iterator[bytes]:
    """``pieces``, the last one only when all together have the size and the digest of the item.

    :raises ExpansionError: when they have not
    """
    plain = view.plain
    digest = hashlib.new(plain.algorithm, usedforsecurity=False)
    size, held = 0, b""
    for piece in pieces:
        if not piece:
            continue
        size += len(piece)
        if size > plain.size:
            raise ExpansionError(f"more than the {plain.size} bytes that it had were made")
        digest.update(piece)
        if held:
            yield held
        held = piece
    if size < plain.size:
        raise ExpansionError(f"{size} bytes were made, expected {plain.size}")
    if digest.hexdigest() != plain.digest:
        raise ExpansionError("other bytes than it had were made")
    if held:
        yield held


def _passed_on(pieces: Iterator[bytes], stream: SharedStream, alive: Callable[[], None]) -> Iterator[bytes]:
    for piece in pieces:
        alive()
        stream.append(piece)
        yield piece
    stream.finish()
