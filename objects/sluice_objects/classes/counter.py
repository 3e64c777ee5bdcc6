"""The class `counter`: a number that is added to."""

from __future__ import annotations

from typing import Final

from sluice_objects.api import Context, ObjectClass, Refused, Value, method
from sluice_objects.classes.arguments import LARGEST_NUMBER, Arguments

_TOTAL: Final = "total"


class Counter(ObjectClass):
    """An integer of 64 bits, 0 at first."""

    name = "counter"

    @method(writes=True)
    def add(self, context: Context, argument: Value) -> Value:
        """Add a number.

        :param argument: `amount` (1), which may be negative
        :returns: `total`
        :raises Refused: 409 when the sum has more than 64 bits
        """
        total = _total(context) + Arguments(argument, "amount").integer("amount", 1, -LARGEST_NUMBER)
        if abs(total) > LARGEST_NUMBER:
            raise Refused(f"the sum is `{total}`, expected at most {LARGEST_NUMBER} or its negative", 409)
        context.attributes[_TOTAL] = str(total)
        return {"total": total}

    @method()
    def read(self, context: Context, argument: Value) -> Value:
        """Read the number.

        :param argument: nothing
        :returns: `total`
        """
        Arguments(argument)
        return {"total": _total(context)}


def _total(context: Context) -> int:
    return int(context.attributes.get(_TOTAL, "0"))
