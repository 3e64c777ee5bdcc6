"""Water-filling: divide an amount in proportion to weights, within the limit of each member.

What exceeds the limit of one member goes to the others, again in proportion to their weights, until the amount is used
up or all members are at their limits.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from sluice_actors.bandwidth.arrays import BoolArray, FloatArray, IntArray


def water_fill(total: float, weights: Sequence[float], limits: Sequence[float]) -> list[float]:
    """Divide ``total`` among a few members, for which plain lists are faster than arrays.

    :param total: infinite gives every member its limit
    :param weights: a member of weight 0 gets nothing
    :param limits: in the unit of ``total``, infinite for none
    """
    if math.isinf(total):
        return list(limits)
    given = [0.0] * len(weights)
    left = total
    rest = [place for place, weight in enumerate(weights) if weight > 0]
    while rest and left > 0:
        scale = left / sum(weights[place] for place in rest)
        full = [place for place in rest if weights[place] * scale >= limits[place]]
        if not full:
            for place in rest:
                given[place] = weights[place] * scale
            break
        for place in full:
            given[place] = limits[place]
            left -= limits[place]
        rest = [place for place in rest if weights[place] * scale < limits[place]]
    return given


def water_fill_groups(groups: IntArray, weights: FloatArray, limits: FloatArray, which: BoolArray) -> FloatArray:
    """Divide 1 among the members of each group at once.

    :param groups: (members,) the group of each
    :param weights: (members,) a member of weight 0 gets nothing
    :param limits: (members,) as a part of the group's amount, infinite for none
    :param which: (groups,) the groups that have anything to divide; members of the others get 0
    :returns: (members,) the part of each
    """
    count = len(which)
    given = np.zeros(len(weights))
    left = np.where(which, 1.0, 0.0)
    rest = np.flatnonzero(which[groups] & (weights > 0))
    while len(rest):
        group, weight, limit = groups[rest], weights[rest], limits[rest]
        scale = left / np.maximum(np.bincount(group, weight, minlength=count), 1e-300)
        part = weight * scale[group]
        full = part >= limit
        again = np.bincount(group, full, minlength=count) > 0
        given[rest] = np.where(full, limit, np.where(again[group], 0.0, part))
        left = left - np.bincount(group, np.where(full, limit, 0.0), minlength=count)
        rest = rest[~full & (again & (left > 0))[group]]
    return given
