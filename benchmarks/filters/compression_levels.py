"""The cost of each level of ``compression``: processor time, size of a compressed log, and memory of one stream.

    python -m benchmarks.filters.compression_levels [--size BYTES]

Each level is measured in a process of its own, without Swift: the object goes through the filter's encoder and decoder
in pieces of 64 KiB.  Memory is the growth of the process to its peak while one object is encoded, the frame included.
"""

from __future__ import annotations

import argparse
import ctypes
import multiprocessing
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from benchmarks.harness.corpus import log_corpus

from sluice_filters.api import Hint, Stream
from sluice_filters.compression.compression import Compression

LEVELS: Final = {
    "gzip": (0, 1, 3, 4, 6, 9),
    "lz4": (-65536, -8, 0, 3, 9, 12),
    "zstd": (-7, -1, 1, 3, 6, 9, 12, 15, 19),
}
#: Of an object of up to 64 MiB, and of one of more than 1 GiB.
FRAMES: Final = (256 << 10, 8 << 20)
_PIECE: Final = 64 << 10
_MB: Final = 1e6
_RESET: Final = Path("/proc/self/clear_refs")
_STATUS: Final = Path("/proc/self/status")


def main() -> None:
    """Print a Markdown table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--size", type=int, default=16 << 20, help="bytes of the object")
    size = parser.parse_args().size
    print("| engine | level | encode MB/s | decode MB/s | left | memory, frames of 256 KiB | of 8 MiB |")
    print("|---|---|---|---|---|---|---|")
    for engine, levels in LEVELS.items():
        for level in levels:
            fine, coarse = (_measured(engine, level, frame, size) for frame in FRAMES)
            decode = f"{fine[1]:.0f}" if fine[1] else "stored plain"
            memory = " | ".join(f"{found[3] / _MB:.1f} MB" for found in (fine, coarse))
            print(f"| {engine} | {level} | {fine[0]:.0f} | {decode} | {fine[2]:.3f} | {memory} |")
            sys.stdout.flush()


def _measured(engine: str, level: int, frame: int, size: int) -> tuple[float, float, float, float]:
    """The same as :func:`_measure`, in a new process."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(_measure, (engine, level, frame, size))


def _measure(engine: str, level: int, frame: int, size: int) -> tuple[float, float, float, float]:
    """MB/s of processor time of both directions, the compressed share, and bytes of memory."""
    data = log_corpus(size)
    chosen = Compression({"engine": engine, "level": level, "frame_size": frame, "min_gain": 0.0})
    memory = _memory(chosen.encoder(Hint(size)), data)
    encoder = chosen.encoder(Hint(size))
    encode, stored = _timed(encoder, data)
    record = encoder.record()
    if record is None:
        return size / encode / _MB, 0.0, 1.0, memory
    decode, plain = _timed(chosen.decoder(record), stored)
    if plain != data:
        raise AssertionError(f"{engine} level {level} does not give the object back")
    return size / encode / _MB, size / decode / _MB, len(stored) / size, memory


def _timed(stream: Stream, data: bytes) -> tuple[float, bytes]:
    """Seconds of processor time, and all output."""
    begin = time.process_time()
    found = list(_passed(stream, data))
    return time.process_time() - begin, b"".join(found)


def _passed(stream: Stream, data: bytes) -> Iterator[bytes]:
    for place in range(0, len(data), _PIECE):
        yield stream.feed(data[place : place + _PIECE])
    yield stream.finish()


def _memory(stream: Stream, data: bytes) -> float:
    """The largest growth of the process in bytes while ``stream`` is fed."""
    ctypes.CDLL(None).malloc_trim(0)  # otherwise it reuses memory of the object's creation
    _RESET.write_text("5")  # the peak of resident memory, proc(5)
    before = _status("VmRSS")
    for _ in _passed(stream, data):
        pass
    return _status("VmHWM") - before


def _status(name: str) -> float:
    """A line of the process's status, in bytes."""
    lines = dict(line.split(":", 1) for line in _STATUS.read_text().splitlines())
    return int(lines[name].split()[0]) * 1024.0


if __name__ == "__main__":
    main()
