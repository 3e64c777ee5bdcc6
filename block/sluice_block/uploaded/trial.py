"""Tries an uploaded filter before its use: over a volume in memory, confined as in use.

A node's agent runs it as a program (:mod:`sluice_code.native_trial`).  nbdkit refuses a filter that was built for
another version of it; the other checks are those of a volume: its size, its bytes, and its end on request.

Each check raises :class:`BadUpload` with the fault; ``expected`` is the expected content of the volume, and changes
with the writes of a check.
"""

from __future__ import annotations

import json
import random
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from sluice_block.datapath.processes import ProcessRecord, run, wait_until
from sluice_block.stack.build import build_confinement
from sluice_block.uploaded import sandbox
from sluice_block.uploaded.catalogue import nbdkit_parameters
from sluice_block.uploaded.nbd_client import NbdClient, RequestFailed
from sluice_code.code_store import BadUpload
from sluice_code.native_trial import Trial, Verdict
from sluice_code.volume_filters import describe_volume_filter
from sluice_core.describe import NBDKIT, ActionInfo, Parameter, Scalar
from sluice_core.errors import PeerError, SluiceError
from sluice_core.messages.uploads import Upload

#: Bytes of the volume.
SIZE: Final = 8 << 20
#: Seconds for one answer, and for the end.
PATIENCE: Final = 8.0
#: Number of writes in each round, and their greatest size in bytes.
_WRITES: Final = 100
_ZERO_REQUESTS: Final = 8
_LARGEST: Final = 128 << 10
#: Concurrent clients: nbdkit has 16 threads for each of them, and 64 in the sandbox.
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
            return  # without it, zeroes are written as other bytes are
        expected[offset : offset + count] = bytes(count)
    compare(client.read(SIZE, 0), expected, "after zero requests")


def check_trim(client: NbdClient, expected: bytearray) -> None:
    """Trimmed bytes may read as anything; the bytes around them stay."""
    offset = SIZE // 2
    try:
        client.trim(_LARGEST, offset)
    except RequestFailed:
        return
    expected[offset : offset + _LARGEST] = bytes(_LARGEST)
    client.write(bytes(_LARGEST), offset)
    compare(client.read(SIZE, 0), expected, "after a trim request")


def write_at_once(shown: Path, expected: bytearray) -> None:
    """Write with several clients, each in a part of its own."""
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
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]


def check_extents(shown: Path) -> None:
    """Extents that are reported as zeroes must read as zeroes, since a copy of a volume omits them."""
    command = ["nbdinfo", "--map", "--json", f"nbd+unix:///?socket={shown}"]
    told = json.loads(run(command, "what is allocated is not told"))
    with NbdClient(shown, PATIENCE) as client:
        for one in told:
            if one["type"] & _ZEROES and any(client.read(one["length"], one["offset"])):
                place = f"{one['length']} bytes at {one['offset']}"
                raise BadUpload(f"it says that {place} are zeroes, and they read as others")


def compare(actual: bytes, expected: bytes | bytearray, when: str) -> None:
    if actual != expected:
        place = next(number for number, (one, other) in enumerate(zip(actual, expected, strict=True)) if one != other)
        raise BadUpload(f"{when} byte {place} reads as {actual[place]}, expected {expected[place]}")


def _chance(seed: int) -> random.Random:
    return random.Random(seed)  # noqa: S311 -- the same in each trial


@dataclass(frozen=True, slots=True)
class _Bench:
    """The environment of a trial: ``folder`` has its sockets, and the confinement library."""

    folder: Path
    arguments: tuple[str, ...]

    @contextmanager
    def memory(self) -> Iterator[Path]:
        """Yield the socket of an empty volume in memory."""
        path, ready = self.folder / "base.sock", self.folder / "base.pid"
        for one in (path, ready):
            one.unlink(missing_ok=True)
        options = ["--foreground", "--exit-with-parent", "--pidfile", str(ready), "--unix", str(path)]
        command = ["nbdkit", *options, "memory", str(SIZE)]
        nothing = subprocess.DEVNULL
        process = subprocess.Popen(command, stdin=nothing, stdout=nothing, stderr=nothing)
        try:
            if not wait_until(ready.exists, PATIENCE):
                raise PeerError("`nbdkit` shows no volume in memory")
            yield path
        finally:
            process.kill()
            process.wait()

    @contextmanager
    def filtered(self, code: bytes, base: Path) -> Iterator[tuple[Path, ProcessRecord]]:
        """Serve the volume behind the filter, at another socket."""
        shown = self.folder / "filter.sock"
        bounds = sandbox.Confinement(lasting=False)
        made = sandbox.start(code, self.arguments, shown, base, self.folder, bounds, self.folder / "filter.log")
        try:
            yield shown, made.process
        finally:
            made.process.end(patience=0)
            sandbox.how_it_ended(made.outer)


def run_trial(trial: Trial, code: bytes) -> Verdict:
    """Try the filter and return the verdict.

    :raises SluiceError: with the reason why the filter cannot be used
    """
    declared = dict(trial.info)
    reverse = bool(declared.pop("reversible", False))
    tried = Upload(trial.keyword, NBDKIT, "", "", trial.sha256, len(code), reverse=reverse, info=declared)
    info = describe_volume_filter(tried)
    for program, package in (("nbdkit", "nbdkit"), ("bwrap", "bubblewrap"), ("nbdinfo", "libnbd-bin")):
        if shutil.which(program) is None:
            raise PeerError(f"`{program}` is missing on this node: expected the Debian package {package}")
    with tempfile.TemporaryDirectory(prefix="sluice-trial-") as name:
        build_confinement(Path(name))
        bench = _Bench(Path(name), nbdkit_parameters(info, _examples(info)))
        _check_content(bench, info, code)
        for one in trial.earlier:
            _check_reads_earlier(bench, code, Path(trial.folder, one.sha256).read_bytes(), one.number)
    return Verdict()


def _check_content(bench: _Bench, info: ActionInfo, code: bytes) -> None:
    expected = bytearray(SIZE)
    with bench.memory() as base:
        with bench.filtered(code, base) as (shown, process):
            with NbdClient(shown, PATIENCE) as client:
                if client.size != SIZE:
                    raise BadUpload(f"a volume of {SIZE} bytes shows {client.size} through it")
                expected[:] = client.read(SIZE, 0)  # a filter may return anything for bytes that were never written
                write_here_and_there(client, expected)
                check_zeroes(client, expected)
                check_trim(client, expected)
                client.flush()
            write_at_once(shown, expected)
            check_extents(shown)
            _check_end(process)
        with bench.filtered(code, base) as (shown, _), NbdClient(shown, PATIENCE) as client:
            compare(client.read(SIZE, 0), expected, "after a restart")
        if not info.changes_content:
            with NbdClient(base, PATIENCE) as client:
                compare(client.read(SIZE, 0), expected, "behind it, although it says that it changes no content,")


def _check_end(process: ProcessRecord) -> None:
    process.terminate()
    if not process.wait(PATIENCE):
        raise BadUpload(f"it does not end within {PATIENCE:g} s after SIGTERM")


def _check_reads_earlier(bench: _Bench, code: bytes, earlier: bytes, number: int) -> None:
    expected = bytearray(SIZE)
    with bench.memory() as base:
        with bench.filtered(earlier, base) as (shown, _), NbdClient(shown, PATIENCE) as client:
            client.write(bytes(SIZE), 0)
            write_here_and_there(client, expected)
            client.flush()
        with bench.filtered(code, base) as (shown, _), NbdClient(shown, PATIENCE) as client:
            compare(client.read(SIZE, 0), expected, f"that revision {number} stored")


def _examples(info: ActionInfo) -> dict[str, Scalar]:
    """Return values for the parameters without a default."""
    return {one.name: _example(info.keyword, one) for one in info.parameters if one.default is None and one.required}


def _example(keyword: str, parameter: Parameter) -> Scalar:
    if parameter.choices:
        return parameter.choices[0]
    if parameter.minimum is not None:
        return int(parameter.minimum) if parameter.type == "int" else parameter.minimum
    raise BadUpload(
        f"parameter `{parameter.name}` of filter `{keyword}` has no default, no choices and no minimum to try it with"
    )


def main() -> None:
    """Run the trial on standard input, and write its verdict to standard output."""
    trial = Trial.decode(sys.stdin.buffer.read())
    try:
        verdict = run_trial(trial, Path(trial.folder, trial.sha256).read_bytes())
    except SluiceError as error:
        verdict = Verdict(str(error))
    except OSError as error:
        verdict = Verdict(f"the code cannot be tried: {error.strerror}")
    sys.stdout.buffer.write(verdict.encode())


if __name__ == "__main__":
    main()
