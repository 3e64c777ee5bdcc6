"""The space of a mount: all of its items, kept at a target size that may be changed while it is mounted."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, Final

from sluice_core.errors import CallerError
from sluice_motif_control.messages import SpaceStatus
from sluice_motifs.runtime import Runtime
from sluice_motifs.space.controller import SpaceController
from sluice_motifs.space.keeper import SpaceConfig
from sluice_motifs.space.one_space import PATH, OneSpace
from sluice_motifs.storage.leases import LocalLeases

#: What is said of it, of what a daemon reports of its spaces.
_REPORTED: Final = (
    *("state", "reason", "used", "contracted", "items", "contracted_items", "hits", "misses", "hit_rate"),
    *("expansions", "seconds_lost", "expansions_per_second", "expansion_time"),
)


class MountSpace(SpaceController):
    """:meth:`start` and :meth:`stop` it.

    :param in_use: whether somebody has an item open
    :param target: bytes of expanded items; None for any number
    :param policy: which of them are contracted first: the keyword of a replacement policy
    :param share: of all seconds, that may be lost by contracting too much: as of ``ThrashingGuard``
    :raises CallerError: when there is no such policy, or the target is negative
    """

    def __init__(
        self, runtime: Runtime, in_use: Callable[[str], bool], target: int | None, policy: str, share: float
    ) -> None:
        self._rules = OneSpace(target, policy)
        super().__init__(runtime, self._rules, LocalLeases(), "", SpaceConfig(in_use=in_use, share=share))

    def describe(self) -> str:
        """How it stands, as a JSON object."""
        found = self.statuses.get(PATH) or SpaceStatus(PATH, "", 0, 0, 0)
        kept: dict[str, Any] = {"target": self._rules.target, "policy": self._rules.policy}
        return json.dumps(kept | {field: getattr(found, field) for field in _REPORTED})

    def change(self, text: str) -> None:
        """Change what it is kept by, given as a JSON object with ``target_size``, null for none, ``policy``, or both.

        :raises CallerError: when it cannot be, and why
        """
        try:
            described = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise CallerError("the space is no JSON") from error
        if not isinstance(described, dict) or described.keys() - {"target_size", "policy"}:
            raise CallerError("expected a JSON object with `target_size`, `policy`, or both")
        target = described.get("target_size", self._rules.target)
        policy = described.get("policy", self._rules.policy)
        if not (target is None or type(target) is int):
            raise CallerError(f"`target_size` is `{target}`, expected bytes, or null for no target")
        self._rules.change(target, f"{policy}")
        self._told.put(self.step)
