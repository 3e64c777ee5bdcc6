"""An item whose bytes lie under another storage policy while they are not used.

The copy is named by these very bytes.  It is kept when the item is expanded again, so that the next contraction writes
nothing, and is removed some time after no item refers to it (``contraction.copies``).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from sluice_core.describe import MOTIF, ActionInfo, Parameter, Scalar
from sluice_motifs.api import COPY, DISK, PRESERVING, TIER, ExpansionError, Source, Template, TemplateCall


class Tier(Template):
    """Reads the copy that was made when the bytes went."""

    info = ActionInfo(
        TIER,
        MOTIF,
        "a hidden copy under another storage policy, made when the bytes go",
        (Parameter("policy", "str", "the storage policy of the copy; empty for that of the item", required=True),),
    )
    relation = PRESERVING
    resource = DISK
    keeps_copy = True
    copy_is_item = True

    def sources(self, item: str) -> Sequence[Source]:
        copy = self.params.get(COPY)
        return [Source(str(copy), owned=True)] if copy else []

    def keep_copy(self, call: TemplateCall) -> Mapping[str, Scalar]:
        return {COPY: call.keep_copy(str(self.params["policy"]))}

    def expand(self, call: TemplateCall) -> Iterator[bytes]:
        if COPY not in self.params:
            raise ExpansionError("no copy was made yet")
        yield from call.read(str(self.params[COPY]))
