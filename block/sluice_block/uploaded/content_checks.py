"""What a volume behind an uploaded filter must give back; each check raises :class:`BadUpload` with what it does not.

``expected`` is what the volume should hold, and changes with what a check writes.
"""

from __future__ import annotations

import json
import random
import threading
from pathlib import Path
from typing import Final

from sluice_block.konnector.datapath.processes import run
from sluice_block.uploaded.nbd_client import NbdClient, RequestFailed
from sluice_code.code_store import BadUpload
from sluice_core.errors import SluiceError

#: Bytes of the volume.
SIZE: Final = 8 << 20
#: Seconds for one answer, and for an end.
PATIENCE: Final = 8.0
#: Writes of each round, and of how many bytes at most.
_WRITES: Final = 100
_ZERO_REQUESTS: Final = 8
_LARGEST: Final = 128 << 10
#: Clients at once: nbdkit has 16 threads for each of them, and 64 in the sandbox.
_CLIENTS: Final = 3
#: The flag of an extent that reads as zeroes.
_ZEROES: Final = 2


def write_here_and_there(client: NbdClient, expected: bytearray) -> None:
    chance = _chance(0)
    for _ in range(_WRITES):
        data = chance.randbytes(chance.randrange(1, _LARGEST))
        offset = chance.randrange(SIZE - len(data))
        client.write(data, offset)
        expected[offset : offset + len(data)] = data
    compare(client.read(SIZE, 0), expected, "after writes here and there")


def check_zeroes(client: NbdClient, expected: bytearray) -> None:
    chance = _chance(1)
    for _ in range(_ZERO_REQUESTS):
        count = chance.randrange(1, _LARGEST)
        offset = chance.randrange(SIZE - count)
        try:
            client.zero(count, offset)
        except RequestFailed:
            return  # it offers none, so that zeroes are written as other bytes are
        expected[offset : offset + count] = bytes(count)
    compare(client.read(SIZE, 0), expected, "after zero requests")


def check_trim(client: NbdClient, expected: bytearray) -> None:
    """What was trimmed may read as anything; the bytes around it stay."""
    offset = SIZE // 2
    try:
        client.trim(_LARGEST, offset)
    except RequestFailed:
        return
    expected[offset : offset + _LARGEST] = bytes(_LARGEST)
    client.write(bytes(_LARGEST), offset)
    compare(client.read(SIZE, 0), expected, "after a trim request")


def write_at_once(shown: Path, expected: bytearray) -> None:
    """Several clients, each in a part of its own."""
    part = SIZE // _CLIENTS
    failures: list[SluiceError] = []

    def work(number: int) -> None:
        chance = _chance(number)
        mine = expected[number * part : (number + 1) * part]
        try:
            with NbdClient(shown, PATIENCE) as client:
                for _ in range(_WRITES // 4):
                    data = chance.randbytes(chance.randrange(1, _LARGEST))
                    offset = chance.randrange(part - len(data))
                    client.write(data, number * part + offset)
                    mine[offset : offset + len(data)] = data
                    compare(client.read(part, number * part), mine, "while others write")
        except SluiceError as error:
            failures.append(error)
        expected[number * part : (number + 1) * part] = mine

    threads = [threading.Thread(target=work, args=(number,)) for number in range(_CLIENTS)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    if failures:
        raise failures[0]


def check_extents(shown: Path) -> None:
    """What is said to be zeroes must read as zeroes: who copies a volume leaves it out."""
    command = ["nbdinfo", "--map", "--json", f"nbd+unix:///?socket={shown}"]
    told = json.loads(run(command, "what is allocated is not told"))
    with NbdClient(shown, PATIENCE) as client:
        for one in told:
            if one["type"] & _ZEROES and any(client.read(one["length"], one["offset"])):
                place = f"{one['length']} bytes at {one['offset']}"
                raise BadUpload(f"it says that {place} are zeroes, and they read as others")


def compare(found: bytes, expected: bytes | bytearray, when: str) -> None:
    if found != expected:
        place = next(number for number, (one, other) in enumerate(zip(found, expected, strict=True)) if one != other)
        raise BadUpload(f"{when} byte {place} reads as {found[place]}, expected {expected[place]}")


def _chance(seed: int) -> random.Random:
    return random.Random(seed)  # noqa: S311 -- the same in each trial
