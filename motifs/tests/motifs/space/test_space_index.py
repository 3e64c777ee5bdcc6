"""Sums and orders of spaces follow from any changes of items."""

import random

from sluice_core.messages.elasticity import Membership, Space, SpacePart
from sluice_motifs.items import ItemState
from sluice_motifs.space.space_index import SpaceIndex


class Rules:
    """Implements ``SpaceRules``: items are named by their containers, which belong to a part or to none."""

    def __init__(self):
        self.places = {}
        self.version = 0

    def refresh(self):
        return self.version

    def container(self, item):
        return item

    def membership(self, container):
        path = self.places.get(container)
        return path and Membership(Space(path[0], "tenant", 100), SpacePart(path))


def held(index):
    """Bytes and items by part, as the parts count them."""
    return {
        part.part.path: (part.usage.expanded_bytes, part.usage.contracted_bytes, len(part))
        for space in index.spaces.values()
        for part in space.parts.values()
        if len(part)
    }


def counted(rules, items):
    """The same, counted over all items."""
    found = {}
    for container, state in items.values():
        path = rules.places.get(container)
        if path:
            expanded, contracted, number = found.get(path, (0, 0, 0))
            more = (state.size, 0) if state.expanded else (0, state.size)
            found[path] = expanded + more[0], contracted + more[1], number + 1
    return found


def test_sums_are_those_of_the_items_after_any_changes_of_items_and_policies():
    drawn = random.Random(1)
    rules, items = Rules(), {}
    index = SpaceIndex(rules, lambda slot: items[slot][0] if slot in items else None, 300.0, 0.01)
    for now in range(5000):
        slot = drawn.randrange(40)
        if drawn.random() < 0.02:
            rules.places = {container: drawn.choice(["ax", "ay", "b", None]) for container in "cdef"}
            rules.version += 1
            index.update(now)
        elif slot in items and drawn.random() < 0.2:
            container, _ = items.pop(slot)
            index.change(slot, container, None, now)
        else:
            container = items[slot][0] if slot in items else drawn.choice("cdef")
            items[slot] = container, ItemState(drawn.randrange(100), drawn.random() < 0.5)
            index.change(slot, container, items[slot][1], now, as_victim=drawn.random() < 0.5)
        assert held(index) == counted(rules, items)
