"""Writes and reads a device from many threads at a time, and compares every block that is read."""

from __future__ import annotations

import mmap
import os
import random
import struct
import threading
import time
from dataclasses import dataclass, field
from typing import Self

_STAMP = struct.Struct("<QQ")


@dataclass
class VerifiedLoad:
    """A context manager: the load runs while it is entered, and is checked at its end.

    Each thread has blocks of its own, so that their content is known.  Blocks hold their number and that of
    their write, repeated.
    """

    device: str
    size: int = 64 << 20
    block: int = 64 << 10
    threads: int = 16
    operations: int = 0
    #: Seconds of the longest operation.
    longest: float = 0.0
    faults: list[str] = field(default_factory=list)

    def __enter__(self) -> Self:
        self._stopping = threading.Event()
        self._descriptor = os.open(self.device, os.O_RDWR | os.O_DIRECT)
        self._running = [threading.Thread(target=self._run, args=(number,)) for number in range(self.threads)]
        for one in self._running:
            one.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        for one in self._running:
            one.join()
        os.close(self._descriptor)
        assert not self.faults, self.faults[:5]
        assert self.operations > self.threads

    def wait_for(self, operations: int) -> None:
        """Wait until this many more operations have ended, or one has failed."""
        wanted = self.operations + operations
        while self.operations < wanted and not self.faults:
            time.sleep(0.005)

    def _run(self, thread: int) -> None:
        random_ = random.Random(thread)
        buffer = mmap.mmap(-1, self.block)  # aligned, as O_DIRECT requires
        written: dict[int, int] = {}
        number = 0
        while not self._stopping.is_set() and not self.faults:
            block = random_.randrange(self.size // self.block // self.threads) * self.threads + thread
            number += 1
            begun = time.monotonic()
            try:
                if block in written and random_.random() < 0.5:
                    self._check(buffer, block, written[block])
                else:
                    buffer[:] = _STAMP.pack(block, number) * (self.block // _STAMP.size)
                    os.pwritev(self._descriptor, [buffer], block * self.block)
                    written[block] = number
            except OSError as error:
                self.faults.append(f"block {block}: {error}")
            self.longest = max(self.longest, time.monotonic() - begun)
            self.operations += 1
        for block, expected in () if self.faults else written.items():
            self._check(buffer, block, expected)

    def _check(self, buffer: mmap.mmap, block: int, expected: int) -> None:
        os.preadv(self._descriptor, [buffer], block * self.block)
        if buffer[:] != _STAMP.pack(block, expected) * (self.block // _STAMP.size):
            found = _STAMP.unpack(buffer[: _STAMP.size])
            self.faults.append(f"block {block} holds {found}, expected writing {expected}")
