"""Extended attributes by which a mount shows motifs, and takes them."""

from __future__ import annotations

from typing import Final

#: The motifs of a file as JSON; set with one of them to attach it, removed to detach all.
MOTIF: Final = "user.sluice.motif"
#: Whether a file is contracted or expanded; set to make it so.
STATE: Final = "user.sluice.motif.state"
#: Why the last change of a file's motifs was refused.
REASON: Final = "user.sluice.motif.reason"
#: How a mount's space stands as JSON, of its top; set to change its target size and policy.
SPACE: Final = "user.sluice.space"

CONTRACTED: Final = "contracted"
EXPANDED: Final = "expanded"
