"""``elasticity``: which space an item belongs to, from the assignments that apply to it.

A *space* is the scope that one sentence with a ``target_size`` keeps below that size: a container, all of a tenant, the
whole cluster; of groups and ALL each member by itself.  A narrower sentence with ``floor`` or ``weight`` in its place
describes a *part* of that space: how much of the target its own bytes get.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from sluice_core.describe import Scalar
from sluice_core.messages.policies import CLUSTER, CONTAINER, TENANT, Assignment

#: The keywords of kind ``motif``: one keeps a space below a size, one attaches a motif to stored objects.
ELASTICITY: Final = "elasticity"
ATTACH: Final = "motif"

TARGET_SIZE: Final = "target_size"
POLICY: Final = "policy"
MIN_AGE: Final = "min_age"
VERIFY: Final = "verify"
FLOOR: Final = "floor"
WEIGHT: Final = "weight"
#: The parameters of a space, and of a part of a space.
OF_SPACES: Final = (TARGET_SIZE, POLICY, MIN_AGE, VERIFY)
OF_PARTS: Final = (FLOOR, WEIGHT)

POLICIES: Final = ("lru", "lfu", "fifo", "clock", "s4lru", "random")
VERIFICATIONS: Final = ("trust", "head", "expand")
#: Path of the space that is the whole cluster.
WHOLE_CLUSTER: Final = "*"


@dataclass(frozen=True, slots=True)
class SpacePart:
    """A part of a space.

    :param floor: bytes that it receives before the space above floors is divided
    :param weight: its relative part of the space above floors
    """

    path: str
    floor: int = 0
    weight: int = 1


@dataclass(frozen=True, slots=True)
class Space:
    """A space: items that are kept below a target size.

    :param path: ``account/container``, ``account``, or :data:`WHOLE_CLUSTER`
    :param target_size: plain bytes of expanded items
    :param policy: one of :data:`POLICIES`: which items are contracted first
    :param min_age: seconds; younger items are not contracted
    :param verify: one of :data:`VERIFICATIONS`: the check before an item's bytes are removed
    :param said_by: the policy that describes the space
    """

    path: str
    level: str
    target_size: int
    policy: str = POLICIES[0]
    min_age: float = 0.0
    verify: str = "head"
    said_by: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class Membership:
    """The space of an item, and the item's part of it; without described parts, the part is the space itself."""

    space: Space
    part: SpacePart


def elasticity_rules(narrowest_first: Sequence[Assignment | None]) -> tuple[Assignment, ...]:
    """Return the rules in force, from the deciding assignment of each scope: parts, then the space that they belong to.

    A DELETE ends wider rules.
    """
    rules: list[Assignment] = []
    for assignment in narrowest_first:
        if assignment is None:
            continue
        if assignment.verb == "delete":
            break
        rules.append(assignment)
        if TARGET_SIZE in assignment.params:
            break
    return tuple(rules)


def membership(pipeline: Sequence[Assignment], account: str, container: str) -> Membership | None:
    """Return the space and the part of the items in a container; None when it belongs to no space.

    :param pipeline: of kind ``motif``, as ``sluice_core.resolve`` gives it
    """
    rules = [one for one in pipeline if one.keyword == ELASTICITY]
    if not rules or TARGET_SIZE not in rules[-1].params:
        return None
    *parts, last = rules
    space = _space(last, account, container)
    if not parts:
        return Membership(space, SpacePart(space.path))
    params = parts[0].params
    part = SpacePart(
        _path(parts[0], account, container),
        max(0, int(_number(params, FLOOR, 0))),
        max(1, int(_number(params, WEIGHT, 1))),
    )
    return Membership(space, part)


def _space(rule: Assignment, account: str, container: str) -> Space:
    params = rule.params
    policy, verify = str(params.get(POLICY, "")), str(params.get(VERIFY, ""))
    return Space(
        _path(rule, account, container),
        rule.target.level,
        max(0, int(_number(params, TARGET_SIZE, 0))),
        policy if policy in POLICIES else POLICIES[0],
        max(0.0, float(_number(params, MIN_AGE, 0.0))),
        verify if verify in VERIFICATIONS else "head",
        rule.policy,
    )


def _path(rule: Assignment, account: str, container: str) -> str:
    paths = {CONTAINER: f"{account}/{container}", TENANT: account, CLUSTER: WHOLE_CLUSTER}
    return paths.get(rule.target.level, WHOLE_CLUSTER)


def _number(params: Mapping[str, Scalar], name: str, default: float) -> Any:
    value = params.get(name, default)
    return value if isinstance(value, int | float) else default
