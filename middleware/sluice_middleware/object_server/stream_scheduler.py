"""Decides which streams of objects get a thread of their own, and its priority; once per process.

The level of a flow comes from the node's agent (``sluice_core.messages.credit.PriorityUpdate``).  It is a level of the
class best effort, 0 (first) to 7, or ``messages.credit.IDLE`` (8), the class *idle*: served when no other I/O waits.
Of the kernel's schedulers only BFQ honours them.  A priority applies to the reads and fsyncs of a thread; the kernel's
later write-back has none.
"""

from __future__ import annotations

import ctypes
import os
import platform
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from sluice_core.messages.bandwidth import Flow
from sluice_core.messages.credit import IDLE
from sluice_core.options import Option, OptionError
from sluice_middleware.bandwidth.io_levels import AgentState
from sluice_middleware.log import Logger
from sluice_middleware.object_server.io_threads import IoThreads, ThreadLease, ThreadStep
from sluice_middleware.swift import green

OBJECTIVE: Final = "objective"
ALWAYS: Final = "always"
NEVER: Final = "never"
_MODES: Final = (OBJECTIVE, ALWAYS, NEVER)
OPTIONS: Final = (
    Option(
        "sluice_io_threads",
        OBJECTIVE,
        "which streams of objects get a thread of their own: objective (all, while any objective of bandwidth is in "
        "force on the node), always, never",
    ),
    Option(
        "sluice_io_threads_most",
        128,
        "threads for streams that one process may have; further streams are served as plain Swift serves them",
    ),
)
#: Bytes that a thread reads or writes at once; a hand-over costs about 100 µs.
STEP: Final = 1 << 20

#: Number of the system call ``ioprio_set`` (``unistd.h``).
_CALLS: Final = {"x86_64": 251, "aarch64": 30}
_THIS_THREAD: Final = 0
_WHO_PROCESS: Final = 1
_BEST_EFFORT: Final = 2
_IDLE_CLASS: Final = 3
_CLASS_SHIFT: Final = 13

#: The only scheduler of the kernel that honours priorities of reads and fsyncs.
PRIORITY_SCHEDULER: Final = "bfq"
_DEVICES: Final = Path("/sys/dev/block")

_libc: Final = ctypes.CDLL(None, use_errno=True)


@dataclass(eq=False)
class StreamThread:
    """A thread while it is lent to the stream of one flow; it is exchanged when the flow's level changes."""

    threads: IoThreads
    lease: ThreadLease
    notifier: green.Notifier
    agent_state: Callable[[], AgentState]
    flow: Flow
    level: int

    @property
    def busy(self) -> bool:
        """Whether the last step has not ended."""
        return self.lease.busy

    def start(self, function: Callable[[], Any]) -> ThreadStep:
        """Call ``function`` in the thread, after all earlier steps, with the flow's priority."""
        level = self.agent_state().level(self.flow)
        if level != self.level and not self.lease.busy:
            other = self.threads.lend(level)
            if other is not None:
                self.lease.release()
                self.lease, self.level = other, level
        return self.lease.start(function, level, self.notifier.event())

    def send(self, function: Callable[[], Any]) -> None:
        """Run ``function`` in the thread, and ignore its result."""
        self.lease.start(function, self.level)

    def release(self, last: Callable[[], Any] | None = None) -> None:
        """Return the thread, and call ``last`` after the last step."""
        self.lease.release(last)


class StreamScheduler:
    """Lends threads to streams; one per manager, all of a process share the threads."""

    def __init__(self, options: Mapping[str, Any], agent_state: Callable[[], AgentState], logger: Logger) -> None:
        """
        :raises OptionError: when :data:`OPTIONS` in ``options`` cannot be used
        """
        self._mode = str(options["sluice_io_threads"])
        self._most = int(options["sluice_io_threads_most"])
        if self._mode not in _MODES:
            raise OptionError(f"option `sluice_io_threads` is `{self._mode}`, expected {', '.join(_MODES)}")
        if self._most < 1:
            raise OptionError(f"option `sluice_io_threads_most` is `{self._most}`, expected 1 at least")
        #: Whether streams always get threads; in mode ``objective`` ``agent_state().active`` decides.
        self.always = self._mode == ALWAYS
        self.agent_state = agent_state
        self._logger = logger

    @property
    def disabled(self) -> bool:
        """Whether no stream ever gets a thread."""
        return self._mode == NEVER

    def wants_threads(self) -> bool:
        """Whether streams get threads now."""
        return self.always or (self._mode == OBJECTIVE and self.agent_state().active)

    def lend(self, flow: Flow) -> StreamThread | None:
        """Lend a thread to a stream of ``flow``; return None when the stream gets none."""
        if not self.wants_threads():
            return None
        place = (os.getpid(), green.hub_id())
        lender = _threads.get(place)
        if lender is None:
            lender = _threads[place] = (self._make(), green.Notifier())
        threads, notifier = lender
        level = self.agent_state().level(flow)
        lease = threads.lend(level)
        if lease is None:
            _say_once(self._logger, f"all {self._most} threads for streams are lent, further streams go without")
            return None
        return StreamThread(threads, lease, notifier, self.agent_state, flow, level)

    def _make(self) -> IoThreads:
        def set_level_if_possible(level: int) -> None:
            try:
                set_level(level)
            except OSError as error:
                _say_once(self._logger, f"streams go without priorities: {error}")

        return IoThreads(green.start_thread, set_level_if_possible, self._most)


#: One per process and hub, shared by all policies and managers.
_threads: dict[tuple[int, int], tuple[IoThreads, green.Notifier]] = {}
_said: set[tuple[int, str]] = set()


def log_devices(folder: str, logger: Logger) -> None:
    """Log once in this process which devices in ``folder`` honour priorities, and which do not."""
    if (os.getpid(), folder) in _said:
        return
    _said.add((os.getpid(), folder))
    try:
        devices = sorted(one for one in Path(folder).iterdir() if one.is_dir())
    except OSError as error:
        logger.warning("sluice: no devices to look at: %s", error)
        return
    for device in devices:
        try:
            heeds, words = honours_priorities(device)
        except OSError as error:
            heeds, words = False, str(error)
        if heeds:
            logger.info("sluice: device `%s` heeds I/O priorities: %s", device.name, words)
        else:
            logger.warning("sluice: device `%s` does not heed I/O priorities: %s, expected bfq", device.name, words)


def _say_once(logger: Logger, words: str) -> None:
    if (os.getpid(), words) not in _said:
        _said.add((os.getpid(), words))
        logger.warning("sluice: %s", words)


def ioprio_value(level: int) -> int:
    """The kernel's ioprio value of ``level``."""
    if level >= IDLE:
        return _IDLE_CLASS << _CLASS_SHIFT
    return _BEST_EFFORT << _CLASS_SHIFT | max(level, 0)


def set_level(level: int) -> None:
    """Give the calling thread's I/O ``level``.

    :raises OSError: ENOSYS on a machine without a known call number, or the kernel's error
    """
    number = _CALLS.get(platform.machine())
    if number is None:
        raise OSError(38, f"no I/O priorities on `{platform.machine()}`, expected {' or '.join(_CALLS)}")
    if _libc.syscall(number, _WHO_PROCESS, _THIS_THREAD, ioprio_value(level)) < 0:
        error = ctypes.get_errno()
        raise OSError(error, f"ioprio_set: {os.strerror(error)}")


def honours_priorities(folder: Path, devices: Path = _DEVICES) -> tuple[bool, str]:
    """Whether the device of the file system of ``folder`` honours priorities, and the reason in words.

    :raises OSError: when the folder does not exist
    """
    number = folder.stat().st_dev
    name = f"{os.major(number)}:{os.minor(number)}"
    place = devices / name
    if not place.exists():
        return False, "no block device"
    found = [(one.name, scheduler(one)) for one in queue_devices(place.resolve())]
    words = ", ".join(f"{disk} has the scheduler {chosen or 'none'}" for disk, chosen in found)
    return bool(found) and all(chosen == PRIORITY_SCHEDULER for _, chosen in found), words


def queue_devices(place: Path) -> Iterator[Path]:
    """The devices with a queue below ``place`` in sysfs (a disk, partition, volume or array).

    A loop device has a queue of its own, and is returned itself.
    """
    if (place / "partition").exists():
        place = place.parent
    below = sorted((place / "slaves").iterdir()) if (place / "slaves").is_dir() else []
    if not below:
        yield place
    for one in below:
        yield from queue_devices(one.resolve())


def scheduler(disk: Path) -> str:
    """The active scheduler of ``disk`` in sysfs; empty without a choice of schedulers."""
    try:
        words = (disk / "queue" / "scheduler").read_text(encoding="ascii").split()
    except OSError:
        return ""
    return next((word.strip("[]") for word in words if word.startswith("[")), "")
