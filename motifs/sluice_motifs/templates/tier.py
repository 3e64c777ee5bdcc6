"""An item whose bytes are stored under another storage policy while they are not used.

The copy is named by these very bytes.  It stays when the item is expanded again, so that the next contraction writes
no bytes, and is removed some time after the last reference to it (``contraction.copies``).
"""

from __future__ import annotations

from collections.abc import Mapping

from sluice_core.describe import MOTIF, ActionInfo, Parameter, Scalar
from sluice_motifs.api import COPY, DISK, TIER, TemplateCall
from sluice_motifs.templates.kept_copy import KeptCopyTemplate


class Tier(KeptCopyTemplate):
    """Keeps a copy under a storage policy."""

    info = ActionInfo(
        TIER,
        MOTIF,
        "a hidden copy under another storage policy, made before it is contracted",
        (Parameter("policy", "str", "the storage policy of the copy; empty for that of the item", required=True),),
    )
    resource = DISK
    copy_is_item = True

    def keep_copy(self, call: TemplateCall) -> Mapping[str, Scalar]:
        return {COPY: call.keep_copy(str(self.params["policy"]))}
