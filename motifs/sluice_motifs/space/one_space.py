"""Rules of a storage whose items are one space: a mount, a database."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Final

from sluice_core.errors import CallerError
from sluice_core.messages.elasticity import Membership, Space, SpacePart
from sluice_motifs.contraction.preparation import HEAD
from sluice_motifs.replacement.registry import create_policy

#: The target of a space without one: its items are neither contracted nor filled.
UNLIMITED: Final = 2**62
#: The path of the space.
PATH: Final = ""


class OneSpace:
    """Implements ``SpaceRules``; :meth:`change` may be called at any time, from any thread.

    :param target: plain bytes of expanded items; None: no target
    :param policy: keyword of a replacement policy
    :raises CallerError: for an unknown policy, or a negative target
    """

    def __init__(self, target: int | None, policy: str) -> None:
        self._member = self._checked(target, policy)

    @property
    def target(self) -> int | None:
        """Plain bytes; None without a target."""
        target = self._member.space.target_size
        return None if target == UNLIMITED else target

    @property
    def policy(self) -> str:
        """Keyword of the replacement policy."""
        return self._member.space.policy

    def fits(self, size: int) -> bool:
        """Whether an item of this size can fit the target."""
        return size <= self._member.space.target_size

    def change(self, target: int | None, policy: str) -> None:
        """
        :raises CallerError: as above; then the rules do not change
        """
        self._member = self._checked(target, policy)

    def refresh(self) -> Hashable:
        return self._member

    def container(self, item: str) -> str:
        return PATH

    def membership(self, container: str) -> Membership:
        return self._member

    def _checked(self, target: int | None, policy: str) -> Membership:
        create_policy(policy)
        if target is not None and target < 0:
            raise CallerError(f"size `{target}` is negative, expected at least 0 bytes")
        size = UNLIMITED if target is None else min(target, UNLIMITED)
        return Membership(Space(PATH, "", size, policy, 0.0, HEAD), SpacePart(PATH))
