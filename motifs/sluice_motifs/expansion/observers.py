"""Tells of what an operator should know: motifs whose sources are gone, and bytes that came out otherwise."""

from __future__ import annotations

from collections.abc import Callable

from sluice_core.messages.events import MOTIF_DETACHED, MOTIF_MISMATCH
from sluice_motifs.expansion.proof import OTHER_BYTES
from sluice_motifs.storage.records import ItemView, Motif

#: Takes what happened: its kind (``sluice_core.messages.events``), the space or item that it is about, and a text.
Tell = Callable[[str, str, str], object]


class EventObserver:
    """Implements ``Observer`` of expansions."""

    def __init__(self, tell: Tell) -> None:
        self._tell = tell

    def expanded(self, view: ItemView, motif: Motif, seconds: float) -> None:
        """Nothing to tell."""

    def failed(self, view: ItemView, reason: str) -> None:
        """Told only when a motif made other bytes: what is away may come back by itself."""
        if OTHER_BYTES in reason:
            self._tell(MOTIF_MISMATCH, view.name, reason)

    def detached(self, view: ItemView, motifs: tuple[Motif, ...], sources: frozenset[str]) -> None:
        templates = ", ".join(f"`{one.template}`" for one in motifs)
        gone = ", ".join(f"`{one}`" for one in sorted(sources))
        self._tell(
            MOTIF_DETACHED, view.name, f"{templates} of `{view.name}` is detached: {gone} does not exist any more"
        )
