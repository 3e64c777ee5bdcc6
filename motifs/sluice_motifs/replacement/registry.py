"""The replacement policies, in one literal list."""

from __future__ import annotations

import difflib
from typing import Final

from sluice_core.errors import CallerError
from sluice_motifs.replacement.api import ReplacementPolicy
from sluice_motifs.replacement.clock import Clock
from sluice_motifs.replacement.fifo import Fifo
from sluice_motifs.replacement.lfu import Lfu
from sluice_motifs.replacement.lru import Lru
from sluice_motifs.replacement.random import RandomReplacement
from sluice_motifs.replacement.s4lru import S4Lru

BUILT_IN: Final[tuple[type[ReplacementPolicy], ...]] = (Lru, Lfu, Fifo, Clock, S4Lru, RandomReplacement)


def create_policy(keyword: str) -> ReplacementPolicy:
    """A new policy without slots.

    :raises CallerError: for an unknown keyword
    """
    policies = {policy.keyword: policy for policy in BUILT_IN}
    if keyword not in policies:
        near = difflib.get_close_matches(keyword, policies, 1)
        hint = f", did you mean `{near[0]}`" if near else ""
        raise CallerError(f"unknown replacement policy `{keyword}`{hint}, expected one of {', '.join(policies)}")
    return policies[keyword]()
