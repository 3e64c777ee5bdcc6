"""Runs under the system's Python, which has libnbd: executes the lines of JSON on its standard input.

Its argument is a URI. A line is ``[operation, argument, ...]``, the answer ``{"value": ...}`` or ``{"errno": ...}``;
bytes travel as hexadecimal text.
"""

import errno
import functools
import itertools
import json
import sys

import nbd

connection = nbd.NBD()
connection.add_meta_context("base:allocation")
connection.connect_uri(sys.argv[1])
#: The results of the requests of ``begin``: 0 or an errno; and their numbers, counted from 0.
answered = []
order = []
begun = itertools.count()


def extents(count, offset):
    found = []
    connection.block_status(count, offset, lambda context, start, entries, error: found.extend(entries) and None)
    return found


def begin(kind, count, size):
    """Send ``count`` requests without waiting for a response."""

    def note(number, error):
        answered.append(error if isinstance(error, int) else error.value)
        order.append(number)
        return 1

    for number in range(count):
        offset = number * size
        done = functools.partial(note, next(begun))
        if kind == "write":
            connection.aio_pwrite(nbd.Buffer.from_bytearray(bytearray(size)), offset, done)
        else:
            connection.aio_pread(nbd.Buffer(size), offset, done)


def finish():
    """The results of all started requests, in the order of the responses; errno 107 is a lost connection."""
    try:
        while connection.aio_in_flight() > 0:
            connection.poll(-1)
    except nbd.Error as error:
        if error.errno not in ("ENOTCONN", "ECONNRESET", "EPIPE"):
            raise
    return answered


OPERATIONS = {
    "pread": lambda count, offset: bytes(connection.pread(count, offset)).hex(),
    "pwrite": lambda data, offset: connection.pwrite(bytes.fromhex(data), offset),
    "fua": lambda data, offset: connection.pwrite(bytes.fromhex(data), offset, nbd.CMD_FLAG_FUA),
    "zero": lambda count, offset: connection.zero(count, offset),
    "trim": lambda count, offset: connection.trim(count, offset),
    "flush": lambda: connection.flush(),
    "can": lambda what: getattr(connection, f"can_{what}")(),
    "extents": extents,
    "begin": begin,
    "finish": finish,
    "order": lambda: order,
}

for line in sys.stdin:
    operation, *arguments = json.loads(line)
    try:
        answer = {"value": OPERATIONS[operation](*arguments)}
    except nbd.Error as error:
        answer = {"errno": getattr(errno, error.errno), "text": error.string}
    print(json.dumps(answer), flush=True)
