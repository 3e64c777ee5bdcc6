"""rsync within the cap on replication: the rate of a run, and the bytes that it moved.

* A run starts when there is no debt, and may be :data:`LEAD` seconds ahead of the rate at its end: its ``--bwlimit`` is
  higher by that.  While that debt is paid, rsync starts, shakes hands, and Swift requests hashes, which moves no bytes.
* A run that is shorter than that is charged when it starts, and others may start beside it as soon as that is paid.
  Longer runs take turns.  So the sum of all runs never exceeds the rate and one lead.
* A job is cut into runs of a few seconds each (by suffixes, which are not cut), so that a changed cap soon applies.
  The rate is read when a run's turn begins.
* The bytes of a run are those that the kernel counted (``/proc/<pid>/io``), and at the end those that rsync itself
  logs, in a log for Sluice alone that begins with its process id.  The next run waits for the bytes above the rate.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final

from sluice_middleware.replication.replication_throttle import ThrottledCopy
from sluice_middleware.swift import green

#: The intended duration of a run in seconds.
RUN_SECONDS: Final = 5.0
#: Seconds of its rate that a run may move too early.
LEAD: Final = 0.5
#: The highest rate of a run, as a multiple of its rate.
FASTEST: Final = 4.0
#: Seconds between two checks of the bytes that a run has moved.
_LOOK: Final = 0.25
_BWLIMIT: Final = "--bwlimit="
_PID: Final = re.compile(r"^\S+ \S+ \[(\d+)\]", re.MULTILINE)
_SENT: Final = re.compile(r"\] sent ([\d.,']+) bytes ")
_SIZE: Final = re.compile(r"(\d+(?:\.\d+)?)([bkmg]?)(i?b)?", re.IGNORECASE)
_POWERS: Final = {"b": 0, "k": 1, "": 1, "m": 2, "g": 3}


def limited_command(arguments: Iterable[str], rate: float | None, log: Path) -> list[str]:
    """The command line of rsync with ``--bwlimit`` for ``rate`` (None: unchanged) and the log for Sluice.

    A lower limit that the operator configured stays.
    """
    made = []
    for argument in arguments:
        if argument.startswith(_BWLIMIT) and rate is not None:
            configured = parse_bwlimit(argument.removeprefix(_BWLIMIT))
            # rsync counts in KiB, and 0 means no limit
            argument = f"{_BWLIMIT}{max(1, int(min(configured or rate, rate) / 1024))}"
        made.append(argument)
    return [made[0], f"--log-file={log}", "--log-file-format=", *made[1:]]


def parse_bwlimit(text: str) -> float | None:
    """The bytes per second of rsync's ``--bwlimit``; None without a limit, or for one that cannot be parsed."""
    match = _SIZE.fullmatch(text.strip())
    if match is None:
        return None
    number, unit, more = match.groups()
    base = 1000 if (more or "").lower() == "b" else 1024
    return float(number) * base ** _POWERS[unit.lower()] or None


def suffix_sizes(folder: Path, suffixes: Iterable[str]) -> dict[str, int]:
    """Suffix → bytes of all its files, for suffixes that still exist; reads the disk."""
    sizes = {}
    for suffix in suffixes:
        try:
            sizes[suffix] = sum(_sizes(folder / suffix))
        except FileNotFoundError:
            continue
    return sizes


def _sizes(folder: Path) -> Iterator[int]:
    with os.scandir(folder) as entries:
        for entry in entries:
            try:
                if entry.is_dir(follow_symlinks=False):
                    yield from _sizes(Path(entry.path))
                else:
                    yield entry.stat(follow_symlinks=False).st_size
            except FileNotFoundError:  # replaced meanwhile
                continue


def split_runs(sizes: Mapping[str, int], rate: float) -> Iterator[list[str]]:
    """The suffixes in groups that last about :data:`RUN_SECONDS` each at ``rate``, or are one suffix."""
    group: list[str] = []
    total = 0
    for suffix, size in sizes.items():
        if group and total + size > rate * RUN_SECONDS:
            yield group
            group, total = [], 0
        group.append(suffix)
        total += size
    if group:
        yield group


def is_short(size: float, rate: float) -> bool:
    """Whether a run of ``size`` bytes can be charged as a whole, so that others may run beside it."""
    return size <= rate * LEAD


def run_rate(size: float, rate: float) -> float:
    """Bytes per second for a run of ``size`` bytes (infinite: unknown), so that it ends :data:`LEAD` seconds early."""
    return rate / max(1.0 - LEAD * rate / max(size, 1.0), 1.0 / FASTEST)


class RsyncMeter:
    """Records the bytes of one run of rsync while it runs; a context manager around the run."""

    def __init__(self, log: Path, copy: ThrottledCopy) -> None:
        """
        :param log: the log file of rsync (:func:`limited_command`)
        """
        self.moved = 0
        self._log = log
        self._copy = copy
        self._sleep = green.InterruptibleSleep()
        self._over = False

    def __enter__(self) -> None:
        green.start_green(self._look_on)

    def __exit__(self, *error: object) -> None:
        self._over = True
        self._sleep.wake()
        found = _SENT.search(self._text())
        self._count(int(re.sub(r"\D", "", found[1])) if found else self.moved)

    def _look_on(self) -> None:
        pid = 0
        while not self._over:
            pid = pid or self._pid()
            self._count(bytes_written(pid) if pid else 0)
            self._sleep.wait(_LOOK)

    def _count(self, moved: int) -> None:
        if moved > self.moved:
            self._copy.record(moved - self.moved)
            self.moved = moved

    def _pid(self) -> int:
        found = _PID.search(self._text())
        return int(found[1]) if found else 0

    def _text(self) -> str:
        try:
            return self._log.read_text(encoding="utf-8", errors="replace")
        except FileNotFoundError:  # rsync has not started
            return ""


def bytes_written(pid: int) -> int:
    """Bytes that a process wrote to files and sockets; 0 when it has ended or the kernel does not tell."""
    try:
        text = Path(f"/proc/{pid}/io").read_text(encoding="ascii")
    except OSError:
        return 0
    found = re.search(r"^wchar: (\d+)$", text, re.MULTILINE)
    return int(found[1]) if found else 0
