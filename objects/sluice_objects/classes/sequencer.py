"""The class `sequencer`: gives each position of a shared log once."""

from __future__ import annotations

from typing import Final

from sluice_objects.api import Context, ObjectClass, Refused, Value, method
from sluice_objects.classes.arguments import LARGEST_NUMBER, Arguments
from sluice_objects.classes.epochs import begin_epoch, check_epoch, epoch

_TAIL: Final = "tail"
_MOST: Final = 1 << 20


class Sequencer(ObjectClass):
    """The tail of a log: the position that is given next, 0 at first."""

    name = "sequencer"

    @method(writes=True)
    def next(self, context: Context, argument: Value) -> Value:
        """Get positions.

        :param argument: `epoch`, `count` (1)
        :returns: `first` (position)
        :raises Refused: StaleEpoch (409); 409 for an epoch that did not begin here; 409 without positions left
        """
        given = Arguments(argument, "epoch", "count")
        wanted, first = given.integer("epoch"), _tail(context)
        count = given.integer("count", 1, 1, _MOST)
        check_epoch(context, wanted)
        if wanted > epoch(context):  # the recovery that begins it tells the tail first
            raise Refused(f"epoch `{wanted}` did not begin, expected {epoch(context)}", 409)
        if first + count > LARGEST_NUMBER:
            raise Refused("the log has no positions left", 409)
        context.attributes[_TAIL] = str(first + count)
        return {"first": first}

    @method(writes=True)
    def start(self, context: Context, argument: Value) -> Value:
        """Begin an epoch, after all stripes were sealed with it.

        :param argument: `epoch`, `position` (0): the lowest position that is given from now on
        :returns: `tail` (the position that is given next): not lower than before
        :raises Refused: StaleEpoch (409) when the same or a later epoch began already
        """
        given = Arguments(argument, "epoch", "position")
        tail = max(given.integer("position", 0), _tail(context))
        begin_epoch(context, given.integer("epoch"))
        context.attributes[_TAIL] = str(tail)
        return {"tail": tail}

    @method()
    def tail(self, context: Context, argument: Value) -> Value:
        """Read the tail.

        :param argument: nothing
        :returns: `tail` (the position that is given next), `epoch`
        """
        Arguments(argument)
        return {"tail": _tail(context), "epoch": epoch(context)}


def _tail(context: Context) -> int:
    return int(context.attributes.get(_TAIL, "0"))
