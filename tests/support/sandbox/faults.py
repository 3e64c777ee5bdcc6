"""Uploaded filters that misbehave, and what becomes of the items that they are to make."""

from typing import Final

#: What ``feed`` does, and what the reader of the item is told.
FAULTS: Final = {
    "hangs": ("while True: pass", "died|stood still"),
    "forks": ("os.fork()", "raised `PermissionError`"),
    "eats memory": ("held = []\n        while True: held.append(bytearray(1 << 20))", "raised `MemoryError`|died"),
    # either bound may be met first: that of what the object had, or that of what a filter may make of its input
    "makes a bomb": ("return data * 400", r"more than the \d+ bytes|made \d+ bytes out of \d+, expected at most"),
}


def faulty(body: str) -> bytes:
    """A filter whose ``feed`` does that."""
    return f"""
import os
class Bad:
    def __init__(self, params, direction): pass
    def feed(self, data):
        {body}
    def finish(self): return b""
""".encode()
