"""The class `map`: keys and values, each with the version of the object at its last change."""

from __future__ import annotations

import struct
from typing import Final

from sluice_objects.api import Context, ObjectClass, Refused, Value, method
from sluice_objects.classes.arguments import Arguments
from sluice_objects.classes.pages import MOST, page
from sluice_objects.state.items import end_of_prefix
from sluice_objects.values import unpack

#: Before the encoded value.
_VERSION: Final = struct.Struct(">Q")


class Map(ObjectClass):
    """Keys, which are text, and values of any kind."""

    name = "map"

    @method(writes=True)
    def put(self, context: Context, argument: Value) -> Value:
        """Set the value of a key.

        :param argument: `key` (text), `value` (any), `version` (optional: that of the present value, 0 without one)
        :returns: `version` (of the value)
        :raises Refused: 412 when the present value has another version; 413 when the value is too large
        """
        given = Arguments(argument, "key", "value", "version")
        key, version = given.key("key"), context.version + 1
        _check_version(given, context.items.get(key))
        context.items.set(key, _VERSION.pack(version) + given.value("value"))
        return {"version": version}

    @method()
    def get(self, context: Context, argument: Value) -> Value:
        """Read the value of a key.

        :param argument: `key` (text)
        :returns: `value`, `version` (of the value)
        :raises Refused: 404 when there is none
        """
        given = Arguments(argument, "key")
        return _entry(_present(given, context))

    @method(writes=True)
    def delete(self, context: Context, argument: Value) -> Value:
        """Remove a key.

        :param argument: `key` (text), `version` (optional: that of the present value)
        :returns: nothing
        :raises Refused: 404 when there is none, 412 when the present value has another version
        """
        given = Arguments(argument, "key", "version")
        _check_version(given, _present(given, context))
        context.items.remove(given.key("key"))

    @method()
    def range(self, context: Context, argument: Value) -> Value:
        """List keys and values in the order of the keys in UTF-8.

        :param argument: `start` (text, from the first key), `end` (text, to the last key; not included), `limit` (1000)
        :returns: `items`, a list of maps with `key`, `value` and `version`; `next`, the next page's `start` or None
        """
        given = Arguments(argument, "start", "end", "limit")
        end = given.key("end") if "end" in given else None
        return _page(context, given, given.text("start", "").encode(), end)

    @method()
    def prefix(self, context: Context, argument: Value) -> Value:
        """List keys that begin with a prefix, and their values.

        :param argument: `prefix` (text), `start` (text, from the first such key), `limit` (1,000)
        :returns: as :meth:`range`
        """
        given = Arguments(argument, "prefix", "start", "limit")
        prefix = given.key("prefix")
        return _page(context, given, max(prefix, given.text("start", "").encode()), end_of_prefix(prefix))


def _present(given: Arguments, context: Context) -> bytes:
    stored = context.items.get(given.key("key"))
    if stored is None:
        raise Refused(f"there is no key `{given.text('key')}`", 404)
    return stored


def _check_version(given: Arguments, stored: bytes | None) -> None:
    present = 0 if stored is None else _VERSION.unpack_from(stored)[0]
    if "version" in given and given.integer("version") != present:
        raise Refused(f"the version of the value is {present}, expected {given.integer('version')}", 412)


def _entry(stored: bytes) -> dict[str, Value]:
    return {"value": unpack(stored[_VERSION.size :]), "version": _VERSION.unpack_from(stored)[0]}


def _page(context: Context, given: Arguments, start: bytes, end: bytes | None) -> Value:
    items = context.items.range(start, end)
    return page(items, given.integer("limit", MOST, 1, MOST), lambda key, stored: {"key": key, **_entry(stored)})
