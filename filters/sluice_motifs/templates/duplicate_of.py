"""An item that has the bytes of another one, and keeps them when that one is written."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sluice_core.describe import MOTIF, ActionInfo, Parameter
from sluice_motifs.api import DISK, PRESERVING, Source, Template, TemplateCall


class DuplicateOf(Template):
    """Copies its source."""

    info = ActionInfo(
        "duplicate_of",
        MOTIF,
        "the same bytes as another item, which waits for this one before it is written",
        (Parameter("source", "str", "the other item", required=True),),
    )
    relation = PRESERVING
    resource = DISK

    def sources(self, item: str) -> Sequence[Source]:
        return [Source(str(self.params["source"]))]

    def expand(self, call: TemplateCall) -> Iterator[bytes]:
        yield from call.read(str(self.params["source"]))
