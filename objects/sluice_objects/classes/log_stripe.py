"""The class `log_stripe`: positions of a shared log, each of which is written once.

A record stands for a batch of entries: its first position, their count, and the object that holds them.  A stripe
keeps the records only.  Sealing it with a later epoch stops writers that do not know of that epoch: what is not written
then is not written by them later.
"""

from __future__ import annotations

import struct
from typing import Final, NamedTuple

from sluice_objects.api import Context, ObjectClass, Refused, Value, method
from sluice_objects.classes.arguments import LARGEST_NUMBER, Arguments
from sluice_objects.classes.epochs import begin_epoch, check_epoch, epoch
from sluice_objects.values import pack, unpack

#: Records and bytes of a stripe.
MOST_RECORDS: Final = 4096
MOST_BYTES: Final = 256 << 10
MOST_ENTRIES: Final = 1 << 20
_POSITION: Final = struct.Struct(">Q")
_TRIMMED: Final = "trimmed"
_BYTES: Final = "bytes"


class Written(Refused):
    """A record has one of the positions."""

    def __init__(self, record: Record) -> None:
        super().__init__(f"positions {record.first} to {record.end - 1} are written", 412)


class Trimmed(Refused):
    """The position was trimmed."""

    def __init__(self, position: int, trimmed: int) -> None:
        super().__init__(f"position `{position}` is trimmed, expected {trimmed} or later", 410)


class Unwritten(Refused):
    """Nothing was written at the position."""

    def __init__(self, position: int) -> None:
        super().__init__(f"position `{position}` is not written", 404)


class StripeFull(Refused):
    """The stripe takes no more records: the log goes on in another one."""

    def __init__(self) -> None:
        super().__init__(f"the stripe is full, expected at most {MOST_RECORDS} records and {MOST_BYTES} bytes", 413)


class Record(NamedTuple):
    """
    :param entries: how many the object has
    :param name: of the object with the entries; None for positions that were filled
    """

    first: int
    entries: int
    name: str | None

    @property
    def end(self) -> int:
        """The position after the last one."""
        return self.first + self.entries


class LogStripe(ObjectClass):
    """Write-once positions of a shared log; each request names the epoch that the client knows."""

    name = "log_stripe"

    @method(writes=True)
    def write(self, context: Context, argument: Value) -> Value:
        """Write a record.

        :param argument: `epoch`, `first` (position), `count` (of entries, 1), `object` (text: its name)
        :returns: nothing
        :raises Refused: StaleEpoch (409), Written (412), Trimmed (410), StripeFull (413)
        """
        given = Arguments(argument, "epoch", "first", "count", "object")
        _add(context, given, given.text("object"))

    @method(writes=True)
    def fill(self, context: Context, argument: Value) -> Value:
        """Write a record without entries, where a writer got positions and did not write them.

        :param argument: `epoch`, `first` (position), `count` (1)
        :returns: nothing
        :raises Refused: as :meth:`write`
        """
        _add(context, Arguments(argument, "epoch", "first", "count"), None)

    @method()
    def read(self, context: Context, argument: Value) -> Value:
        """Read the record of a position.

        :param argument: `epoch`, `position`
        :returns: `first`, `count`, `object` (None for positions that were filled)
        :raises Refused: StaleEpoch (409), Trimmed (410), Unwritten (404)
        """
        given = Arguments(argument, "epoch", "position")
        position = given.integer("position")
        check_epoch(context, given.integer("epoch"))
        if position < _trimmed(context):
            raise Trimmed(position, _trimmed(context))
        record = _last_before(context, position + 1)
        if record is None or record.end <= position:
            raise Unwritten(position)
        return {"first": record.first, "count": record.entries, "object": record.name}

    @method(writes=True)
    def trim(self, context: Context, argument: Value) -> Value:
        """Remove the positions below one; they cannot be written any more.

        :param argument: `epoch`, `position`
        :returns: `trimmed` (the lowest position that is left), `records` (that are left)
        :raises Refused: StaleEpoch (409)
        """
        given = Arguments(argument, "epoch", "position")
        trimmed = max(given.integer("position"), _trimmed(context))
        check_epoch(context, given.integer("epoch"))
        size = _size(context)
        for key, stored in list(context.items.range(b"", _POSITION.pack(trimmed))):
            if _read(key, stored).end <= trimmed:
                context.items.remove(key)
                size -= len(key) + len(stored)
        context.attributes.update({_TRIMMED: str(trimmed), _BYTES: str(size)})
        return {"trimmed": trimmed, "records": len(context.items)}

    @method(writes=True)
    def seal(self, context: Context, argument: Value) -> Value:
        """Begin an epoch: requests with an earlier one are refused from now on.

        :param argument: `epoch`
        :returns: `highest` (the highest position that was ever written, -1 without one)
        :raises Refused: StaleEpoch (409) when the same or a later epoch began already
        """
        begin_epoch(context, Arguments(argument, "epoch").integer("epoch"))
        return {"highest": _highest(context)}

    @method()
    def show(self, context: Context, argument: Value) -> Value:
        """Read what the stripe is.

        :param argument: nothing
        :returns: `epoch`, `trimmed`, `highest`, `records`, `bytes`
        """
        Arguments(argument)
        return {
            "epoch": epoch(context),
            "trimmed": _trimmed(context),
            "highest": _highest(context),
            "records": len(context.items),
            "bytes": _size(context),
        }


def _add(context: Context, given: Arguments, name: str | None) -> None:
    count = given.integer("count", 1, 1, MOST_ENTRIES)
    record = Record(given.integer("first", most=LARGEST_NUMBER - MOST_ENTRIES), count, name)
    check_epoch(context, given.integer("epoch"))
    if record.first < _trimmed(context):
        raise Trimmed(record.first, _trimmed(context))
    before = _last_before(context, record.end)
    if before is not None and before.end > record.first:
        raise Written(before)
    key, stored = _POSITION.pack(record.first), pack([record.entries, record.name])
    size = _size(context) + len(key) + len(stored)
    if len(context.items) == MOST_RECORDS or size > MOST_BYTES:
        raise StripeFull
    context.items.set(key, stored)
    context.attributes[_BYTES] = str(size)


def _read(key: bytes, stored: bytes) -> Record:
    return Record(_POSITION.unpack(key)[0], *unpack(stored))


def _last_before(context: Context, position: int) -> Record | None:
    """The last record that begins before ``position``."""
    for key, stored in context.items.range(b"", _POSITION.pack(position), reverse=True):
        return _read(key, stored)
    return None


def _highest(context: Context) -> int:
    last = _last_before(context, LARGEST_NUMBER)
    return max(_trimmed(context), 0 if last is None else last.end) - 1


def _trimmed(context: Context) -> int:
    return int(context.attributes.get(_TRIMMED, "0"))


def _size(context: Context) -> int:
    return int(context.attributes.get(_BYTES, "0"))
