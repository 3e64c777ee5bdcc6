"""A reversible filter in twenty-five lines: letters are stored thirteen places further."""

from sluice_core.describe import FILTER, ActionInfo
from sluice_filters.api import CorruptData, Filter, Stream

TABLE = bytes.maketrans(
    b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz", b"NOPQRSTUVWXYZABCDEFGHIJKLMnopqrstuvwxyzabcdefghijklm"
)


class Encode(Stream):
    """On the way to the disks; ``record`` is what the object remembers."""

    size = 0

    def feed(self, data):
        self.size += len(data)
        return bytes(data).translate(TABLE)

    def record(self):
        return {"size": self.size} if self.size else None


class Decode(Stream):
    """On the way back, checking what can be checked."""

    def __init__(self, size):
        self.left = size

    def feed(self, data):
        self.left -= len(data)
        return bytes(data).translate(TABLE)

    def finish(self):
        if self.left:
            raise CorruptData(f"stored object is {-self.left} bytes too long")
        return b""


class Rot13(Filter):
    """``DO SET rot13``."""

    info = ActionInfo("rot13", FILTER, "rotate letters", changes_content=True, reversible=True)

    def encoder(self, hint):
        return Encode()

    def decoder(self, record, window=None):
        return Decode(self.plain_size(record))
