"""Which objects were written, and when: a file that a node's processes share without a lock.

A cache of objects must learn of every write, also of writes through other nodes.  The processes of a node map one
small file into their memory: proxy workers and the agent write it, workers read it on each request.

Theory of operation:

* The file has *slots*; an object's digest chooses one.  A slot's *token* is a random number, which every write to one
  of its objects replaces.  A cached copy carries the token from before it was read: while both are equal, no write was
  seen.  Two objects in one slot cost an unnecessary check, never a wrong answer.  No process increments a value, so two
  processes that write at once lose nothing.
* An odd token means that a write has begun: cached copies are not trusted until it has ended.  If a worker ends
  meanwhile, the slot stays so until the next write.
* A slot also holds the identity and timestamp of the object that was written last.  With it a worker recognises an
  answer of a replica that has not received that write.
* The *epoch*, a random number too, changes when writes may have been missed (the agent lost messages, the machine was
  booted).  Cached copies from before are then not trusted.
* *Trusted until*, on the monotonic clock: until then the agent has received all writes that other nodes ended more than
  a second ago.  The agent extends it; it expires when the agent stops.
"""

from __future__ import annotations

import mmap
import os
import struct
import time
from hashlib import blake2b
from pathlib import Path
from typing import Final

from sluice_core.cache.mapped_file import WORD, map_file
from sluice_core.errors import PeerError

SLOTS: Final = 1 << 18
#: Instead of a timestamp: a write has begun; a write has ended at an unknown time.
BEGUN: Final = 0
ENDED: Final = 1
DIGEST_SIZE: Final = 16

_NAME: Final = "marks"
_MAGIC: Final = int.from_bytes(b"sluiMRK1", "little")
_HEADER: Final = 4096
_SLOT: Final = struct.Struct("<QQQ")
_MAGIC_AT, _SLOTS_AT, _BOOT_AT, _EPOCH_AT, _TRUSTED_AT, _UNTOLD_AT = range(0, 48, 8)


def object_digest(path: bytes) -> bytes:
    """The digest of the object at ``path`` (``account/container/object``)."""
    return blake2b(path, digest_size=DIGEST_SIZE).digest()


def timestamp_units(timestamp: str) -> int:
    """Swift's ``seconds.fraction[_offset]`` in units of 10 µs; :data:`ENDED` if it is not a timestamp."""
    seconds, _, fraction = timestamp.partition("_")[0].partition(".")
    if not seconds.isdecimal() or (fraction and not fraction.isdecimal()):
        return ENDED
    return int(seconds) * 100_000 + int((fraction + "00000")[:5])


def boot_number() -> int:
    """A number that changes with each boot of this machine."""
    text = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii")
    return int(text.replace("-", "")[:16], 16)


def _fresh() -> int:
    """A random even number above zero."""
    return int.from_bytes(os.urandom(8), "little") & ~1 | 2


class WriteMarks:
    """The mapped file: one per process, usable after a fork."""

    def __init__(self, memory: mmap.mmap) -> None:
        self._memory = memory
        self._slots: int = WORD.unpack_from(memory, _SLOTS_AT)[0]

    def token(self, key: bytes) -> int:
        """The object's token: it changes with each write, and is odd during a write."""
        found: int = WORD.unpack_from(self._memory, self._at(key))[0]
        return found

    def newest(self, key: bytes) -> int:
        """Timestamp of the newest write to the object; 0 when another object of its slot was written since."""
        _, identity, newest = _SLOT.unpack_from(self._memory, self._at(key))
        return newest if identity == _identity(key) else 0

    def begin(self, key: bytes) -> None:
        """Mark that a write to the object begins."""
        WORD.pack_into(self._memory, self._at(key), _fresh() | 1)

    def end(self, key: bytes, newest: int) -> None:
        """Mark that a write to the object with the timestamp ``newest`` has ended, or may have happened."""
        at = self._at(key)
        if newest <= ENDED:
            WORD.pack_into(self._memory, at, _fresh())
            return
        identity = _identity(key)
        _, other, before = _SLOT.unpack_from(self._memory, at)
        if other == identity and before > newest:
            newest = before
        _SLOT.pack_into(self._memory, at, _fresh(), identity, newest)

    def apply(self, key: bytes, timestamp: int) -> None:
        """Apply a record of another node: :data:`BEGUN`, or the timestamp of a write that ended."""
        if timestamp == BEGUN:
            self.begin(key)
        else:
            self.end(key, timestamp)

    @property
    def epoch(self) -> int:
        """A random number that changes when writes may have been missed."""
        found: int = WORD.unpack_from(self._memory, _EPOCH_AT)[0]
        return found

    def mark_missed(self) -> None:
        """Change the epoch: writes may have been missed."""
        WORD.pack_into(self._memory, _EPOCH_AT, _fresh())

    def is_trusted(self) -> bool:
        """Whether the tokens are valid now: the agent's time has not expired."""
        until: int = WORD.unpack_from(self._memory, _TRUSTED_AT)[0]
        return time.monotonic_ns() < until

    def trust_until(self, until: int) -> None:
        """Mark the tokens as valid up to ``until`` on the monotonic clock, in nanoseconds."""
        WORD.pack_into(self._memory, _TRUSTED_AT, max(0, until))

    def report_loss(self) -> None:
        """Record that the journal misses a write, of which the other nodes do not learn."""
        WORD.pack_into(self._memory, _UNTOLD_AT, _fresh())

    def pop_loss(self) -> bool:
        """Whether a loss was reported since the last call."""
        if not WORD.unpack_from(self._memory, _UNTOLD_AT)[0]:
            return False
        WORD.pack_into(self._memory, _UNTOLD_AT, 0)
        return True

    def close(self) -> None:
        """Unmap the file."""
        self._memory.close()

    def _at(self, key: bytes) -> int:
        return _HEADER + int.from_bytes(key[:8], "little") % self._slots * _SLOT.size


def _identity(key: bytes) -> int:
    return int.from_bytes(key[8:], "little")


def open_write_marks(folder: Path, group: str = "", slots: int = SLOTS, boot: int | None = None) -> WriteMarks:
    """Open the marks in ``folder``; create them if they are missing.

    :param group: the Unix group of a new file
    :raises PeerError: when they can be neither opened nor created
    """
    size = _HEADER + slots * _SLOT.size
    try:
        folder.mkdir(parents=True, exist_ok=True)
        memory = map_file(folder / _NAME, size, _MAGIC, lambda new: WORD.pack_into(new, _SLOTS_AT, slots), group)
        number = boot_number() if boot is None else boot
    except (OSError, LookupError) as error:
        raise PeerError(f"cannot share marks in `{folder}`: {error}") from error
    marks = WriteMarks(memory)
    if WORD.unpack_from(memory, _BOOT_AT)[0] != number:  # pages may be missing, and the monotonic clock restarted
        marks.trust_until(0)
        marks.mark_missed()
        WORD.pack_into(memory, _BOOT_AT, number)
    return marks
