"""The class `set`: texts, each of which is a member or not."""

from __future__ import annotations

from sluice_objects.api import Context, ObjectClass, Value, method
from sluice_objects.classes.arguments import Arguments
from sluice_objects.classes.pages import MOST, page


class Set(ObjectClass):
    """Members, which are text."""

    name = "set"

    @method(writes=True)
    def add(self, context: Context, argument: Value) -> Value:
        """Add a member.

        :param argument: `member` (text)
        :returns: `added` (false when it is a member already), `size` (of the set after)
        """
        member = Arguments(argument, "member").key("member")
        added = context.items.get(member) is None
        context.items.set(member, b"")
        return {"added": added, "size": len(context.items)}

    @method(writes=True)
    def remove(self, context: Context, argument: Value) -> Value:
        """Remove a member.

        :param argument: `member` (text)
        :returns: `removed` (false when it is no member), `size` (of the set after)
        """
        removed = context.items.remove(Arguments(argument, "member").key("member"))
        return {"removed": removed, "size": len(context.items)}

    @method()
    def contains(self, context: Context, argument: Value) -> Value:
        """Ask for a member.

        :param argument: `member` (text)
        :returns: `contains`, `size`
        """
        member = Arguments(argument, "member").key("member")
        return {"contains": context.items.get(member) is not None, "size": len(context.items)}

    @method()
    def members(self, context: Context, argument: Value) -> Value:
        """List the members in the order of UTF-8.

        :param argument: `start` (text, from the first member), `limit` (1,000)
        :returns: `items`, a list of texts; `next`, the `start` of the next page or None
        """
        given = Arguments(argument, "start", "limit")
        items = context.items.range(given.text("start", "").encode())
        return page(items, given.integer("limit", MOST, 1, MOST), lambda member, _: member)
