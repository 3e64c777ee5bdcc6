"""The class `queue`: messages that each reach one consumer at a time, until one acknowledges it.

Theory of operation.  A message is an item below ``r`` while it is ready, and below ``l`` while it is leased to a
consumer, with its id as the rest of the key; the id is the version of the object that the push made.  A leased message
has another item below ``d``, whose key begins with the end of the lease, so that a pop finds the leases that ended
without reading the others.  The end in the key does not know of a change of the home, after which a lease lasts longer:
it is where to look, and the times in the item decide.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Final, NamedTuple

from sluice_objects.api import Context, ObjectClass, Refused, Value, method
from sluice_objects.classes.arguments import Arguments
from sluice_objects.values import pack, unpack

_READY: Final = b"r"
_LEASED: Final = b"l"
_DUE: Final = b"d"
_ID: Final = struct.Struct(">Q")
#: The end of a lease, of which the bytes are in the order of the times, and the id.
_END: Final = struct.Struct(">dQ")
_TIMES: Final = struct.Struct(">dd")
_TIMEOUT: Final = 30.0


class Message(NamedTuple):
    """
    :param value: encoded
    :param pops: how often it was handed out
    :param receipt: the version of the object that the last pop made
    :param since: the time of that pop
    :param timeout: seconds
    """

    value: bytes
    pops: int = 0
    receipt: int = 0
    since: float = 0.0
    timeout: float = 0.0


class Queue(ObjectClass):
    """Messages in the order of their arrival; one whose time-out passes is handed out again before later ones."""

    name = "queue"

    @method(writes=True)
    def push(self, context: Context, argument: Value) -> Value:
        """Add a message.

        :param argument: `value` (any)
        :returns: `id`
        :raises Refused: 413 when the value is too large
        """
        value, message_id = Arguments(argument, "value").value("value"), context.version + 1
        context.items.set(_READY + _ID.pack(message_id), pack(list(Message(value))))
        return {"id": message_id}

    @method(writes=True)
    def pop(self, context: Context, argument: Value) -> Value:
        """Get the first message that is ready; others do not see it for a time.

        :param argument: `timeout` (seconds, 30)
        :returns: `id`, `receipt`, `value`, `pops` (how often it was handed out, with this time); None without messages
        """
        timeout = Arguments(argument, "timeout").timeout("timeout", _TIMEOUT)
        for message_id, _ in list(_ended(context)):
            message = _unlease(context, message_id)
            context.items.set(_READY + _ID.pack(message_id), pack(list(message)))
        key, stored = next(context.items.prefix(_READY), (b"", b""))
        if not key:
            return None
        message_id, message = _read_id(key), Message(*unpack(stored))
        message = Message(message.value, message.pops + 1, context.version + 1, context.time, timeout)
        context.items.remove(key)
        context.items.set(_LEASED + _ID.pack(message_id), pack(list(message)))
        context.items.set(_due_key(message_id, message), _TIMES.pack(message.since, timeout))
        return {"id": message_id, "receipt": message.receipt, **_shown(message)}

    @method(writes=True)
    def acknowledge(self, context: Context, argument: Value) -> Value:
        """Remove a message that was handled; also after its time-out, while nobody else got it.

        :param argument: `id`, `receipt` (integers, from the pop)
        :returns: nothing
        :raises Refused: 404 when it is not handed out, 409 when it was handed out again
        """
        given = Arguments(argument, "id", "receipt")
        message_id, receipt = given.integer("id"), given.integer("receipt")
        stored = context.items.get(_LEASED + _ID.pack(message_id))
        if stored is None:
            raise Refused(f"message `{message_id}` is not handed out", 404)
        if Message(*unpack(stored)).receipt != receipt:
            raise Refused(f"message `{message_id}` was handed out again after receipt `{receipt}`", 409)
        _unlease(context, message_id)

    @method()
    def peek(self, context: Context, argument: Value) -> Value:
        """Read the message that a pop would get.

        :param argument: nothing
        :returns: `id`, `value`, `pops`; None without messages
        """
        Arguments(argument)
        ready = [_read_id(key) for key, _ in context.items.prefix(_READY)][:1]
        message_id = min([*ready, *(ended for ended, _ in _ended(context))], default=None)
        if message_id is None:
            return None
        stored = context.items.get((_READY if message_id in ready else _LEASED) + _ID.pack(message_id))
        return {"id": message_id, **_shown(Message(*unpack(stored or b"")))}

    @method()
    def depth(self, context: Context, argument: Value) -> Value:
        """Count messages.

        :param argument: nothing
        :returns: `ready`, `hidden` (handed out and not acknowledged, within their time-outs)
        """
        Arguments(argument)
        leased = sum(1 for _ in context.items.prefix(_DUE))
        ended = sum(1 for _ in _ended(context))
        return {"ready": len(context.items) - 2 * leased + ended, "hidden": leased - ended}


def _ended(context: Context) -> Iterator[tuple[int, bytes]]:
    """Ids of messages whose lease ended, and keys of its end."""
    for key, times in context.items.range(_DUE, _DUE + _END.pack(context.time, (1 << 64) - 1) + b"\0"):
        if not context.remaining(*_TIMES.unpack(times)):
            yield _read_id(key), key


def _unlease(context: Context, message_id: int) -> Message:
    key = _LEASED + _ID.pack(message_id)
    message = Message(*unpack(context.items.get(key) or b""))
    context.items.remove(key)
    context.items.remove(_due_key(message_id, message))
    return message


def _due_key(message_id: int, message: Message) -> bytes:
    return _DUE + _END.pack(message.since + message.timeout, message_id)


def _read_id(key: bytes) -> int:
    return int.from_bytes(key[-_ID.size :], "big")


def _shown(message: Message) -> dict[str, Value]:
    return {"value": unpack(message.value), "pops": message.pops}
