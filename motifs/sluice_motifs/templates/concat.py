"""An item that is the concatenation of other items."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sluice_core.describe import MOTIF, ActionInfo, Parameter
from sluice_motifs.api import DISK, Source, Template, TemplateCall


class Concat(Template):
    """Joins its sources in the order of the parameter."""

    info = ActionInfo(
        "concat",
        MOTIF,
        "other items, concatenated",
        (Parameter("of", "list", "the items, separated by commas", required=True),),
    )
    resource = DISK

    def sources(self, item: str) -> Sequence[Source]:
        return [Source(name) for name in str(self.params["of"]).split(",")]

    def expand(self, call: TemplateCall) -> Iterator[bytes]:
        for source in self.sources(call.item):
            yield from call.read(source.name)
