"""The class `register`: the byte stream as one value that changes atomically."""

from __future__ import annotations

from typing import Final

from sluice_objects.api import Context, ObjectClass, Refused, Value, method
from sluice_objects.classes.arguments import Arguments
from sluice_objects.writes import etag_of

_MOST_RANGES: Final = 1000


class Register(ObjectClass):
    """A byte stream with conditional writes, appends, and compare-and-swap of ranges."""

    name = "register"

    @method()
    def read(self, context: Context, argument: Value) -> Value:
        """Read a range.

        :param argument: `offset` (0), `size` (integer, the rest by default)
        :returns: `data` (bytes), `size` (of the whole stream), `version`
        :raises Refused: 413 for more than an answer holds
        """
        given = Arguments(argument, "offset", "size")
        size = given.integer("size") if "size" in given else None
        data = context.stream.read(given.integer("offset", 0), size)
        return {"data": data, "size": len(context.stream), "version": context.version}

    @method(writes=True)
    def write(self, context: Context, argument: Value) -> Value:
        """Replace the stream.

        :param argument: `data` (bytes or text); optional conditions: `version` (integer), `etag` (MD5 in hexadecimal)
        :returns: `size`
        :raises Refused: 412 when the version or the ETag of the stream differs
        """
        given = Arguments(argument, "data", "version", "etag")
        data = given.data("data")
        if "version" in given and given.integer("version") != context.version:
            raise Refused(f"the version is {context.version}, expected {given.integer('version')}", 412)
        if "etag" in given:
            etag = etag_of(context.stream.read())
            if given.text("etag").strip('"') != etag:
                raise Refused(f"the ETag is `{etag}`, expected `{given.text('etag'):.60}`", 412)
        context.stream.truncate(0)
        context.stream.write(data)
        return {"size": len(data)}

    @method(writes=True)
    def append(self, context: Context, argument: Value) -> Value:
        """Write at the end.

        :param argument: `data` (bytes or text), `size` (optional: the size of the stream before)
        :returns: `offset` (at which the data is), `size` (of the stream after)
        :raises Refused: 412 when the stream has another size
        """
        given = Arguments(argument, "data", "size")
        data, offset = given.data("data"), len(context.stream)
        if "size" in given and given.integer("size") != offset:
            raise Refused(f"the stream has {offset} bytes, expected {given.integer('size')}", 412)
        context.stream.write(data)
        return {"offset": offset, "size": offset + len(data)}

    @method(writes=True)
    def swap(self, context: Context, argument: Value) -> Value:
        """Replace ranges if each has the expected bytes; all of them or none.

        :param argument: `ranges`, a list of maps with `offset` (integer), `expected` and `data` (bytes or text)
        :returns: `size` (of the stream after)
        :raises Refused: 412 when a range has other bytes
        """
        ranges = Arguments(argument, "ranges").rows("ranges", "offset", "expected", "data", most=_MOST_RANGES)
        for given in ranges:  # all are compared before one changes: they may overlap
            offset, expected = given.integer("offset"), given.data("expected")
            if context.stream.read(offset, len(expected)) != expected:
                raise Refused(f"the {len(expected)} bytes from {offset} are not the expected ones", 412)
        for given in ranges:
            context.stream.write(given.data("data"), given.integer("offset"))
        return {"size": len(context.stream)}
