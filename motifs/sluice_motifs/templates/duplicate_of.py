"""An item that has the bytes of another one, and keeps them when that one is written.

When its bytes go, they are kept once, as a copy that all items of the account with the same bytes share; the other
item gives up its own to that copy as well.  So neither needs the other, and no write of one waits for the other.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from sluice_core.describe import MOTIF, ActionInfo, Parameter, Scalar
from sluice_motifs.api import COPY, DISK, PRESERVING, Source, Template, TemplateCall


class DuplicateOf(Template):
    """Shares one hidden copy with its source."""

    info = ActionInfo(
        "duplicate_of",
        MOTIF,
        "the same bytes as another item; both give them up to one hidden copy",
        (Parameter("source", "str", "the other item", required=True),),
    )
    relation = PRESERVING
    resource = DISK
    keeps_copy = True
    copy_is_item = True

    def sources(self, item: str) -> Sequence[Source]:
        copy = self.params.get(COPY)
        return [Source(str(copy), owned=True) if copy else Source(str(self.params["source"]))]

    def keep_copy(self, call: TemplateCall) -> Mapping[str, Scalar]:
        return {COPY: call.keep_copy()}

    def shares_copy_with(self) -> str:
        return str(self.params["source"])

    def expand(self, call: TemplateCall) -> Iterator[bytes]:
        yield from call.read(self.sources(call.item)[0].name)  # items of version 1 stand on the source
