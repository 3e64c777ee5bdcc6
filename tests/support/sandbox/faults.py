"""Uploaded filters that misbehave, and the results for the items that they should make."""

from typing import Final

#: The body of ``feed``, and the error for the item's reader.
FAULTS: Final = {
    "hangs": ("while True: pass", "died|stood still"),
    "forks": ("os.fork()", "raised `PermissionError`"),
    "eats memory": ("held = []\n        while True: held.append(bytearray(1 << 20))", "raised `MemoryError`|died"),
    # either limit may be exceeded first: that of the object's bytes, or that of a filter's output for its input
    "makes a bomb": ("return data * 400", r"more than the \d+ bytes|made \d+ bytes out of \d+, expected at most"),
}


def faulty(body: str) -> bytes:
    """A filter with that ``feed``."""
    return f"""
import os
class Bad:
    def __init__(self, params, direction): pass
    def feed(self, data):
        {body}
    def finish(self): return b""
""".encode()
