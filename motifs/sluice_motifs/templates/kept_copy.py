"""The base of templates that make an item from a hidden copy."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sluice_motifs.api import COPY, PRESERVING, ExpansionError, Source, Template, TemplateCall


class KeptCopyTemplate(Template):
    """Reads the copy that was stored at the contraction, and shares it with the item that parameter ``source`` names.

    Items of version 1 have no copy and rely on that item.
    """

    relation = PRESERVING
    keeps_copy = True

    def sources(self, item: str) -> Sequence[Source]:
        if COPY in self.params:
            return [Source(str(self.params[COPY]), owned=True)]
        source = self.shares_copy_with()
        return [Source(source)] if source else []

    def shares_copy_with(self) -> str:
        return str(self.params.get("source", ""))

    def expand(self, call: TemplateCall) -> Iterator[bytes]:
        sources = self.sources(call.item)
        if not sources:
            raise ExpansionError("no copy was made yet")
        yield from call.read(sources[0].name)
