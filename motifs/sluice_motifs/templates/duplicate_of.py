"""An item that has the bytes of another one, and keeps them when the other one is written.

When it is contracted, its bytes are kept once, as a copy that all items of the account with the same bytes share; the
other item is contracted to that copy as well.  So neither needs the other, and no write of one waits for the other.
"""

from __future__ import annotations

from collections.abc import Mapping

from sluice_core.describe import MOTIF, ActionInfo, Parameter, Scalar
from sluice_motifs.api import COPY, DISK, TemplateCall
from sluice_motifs.templates.kept_copy import KeptCopyTemplate


class DuplicateOf(KeptCopyTemplate):
    """Shares one hidden copy with its source."""

    info = ActionInfo(
        "duplicate_of",
        MOTIF,
        "the same bytes as another item; one hidden copy serves both",
        (Parameter("source", "str", "the other item", required=True),),
    )
    resource = DISK
    copy_is_item = True

    def keep_copy(self, call: TemplateCall) -> Mapping[str, Scalar]:
        return {COPY: call.keep_copy()}
