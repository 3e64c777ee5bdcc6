"""``sluice-object-replicator`` and ``sluice-object-reconstructor``: Swift's, whose copies are counted and capped.

They take the same command line and configuration as Swift's programs.  Without a cap on replication they behave like
them; the agent is the one of ``[DEFAULT] sluice_agent_socket``, as for disk files.
"""

from __future__ import annotations

import math
import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from sluice_core.errors import SluiceError
from sluice_core.process.distributions import refuse_two_distributions
from sluice_middleware.replication.replication_throttle import AgentThrottle, ThrottledCopy
from sluice_middleware.replication.rsync_throttle import (
    RsyncMeter,
    is_short,
    limited_command,
    run_rate,
    split_runs,
    suffix_sizes,
)
from sluice_middleware.swift import daemon_api as swift
from sluice_middleware.swift import green


class Sender(swift.Sender):  # type: ignore[misc]
    """Swift's sender of SSYNC, which waits for credit before it sends a piece, so that a changed cap applies at once.

    Its daemon has a ``throttle``.  The sender is charged, the receiver is not.  A piece is charged after it was read
    and before it is sent, outside Swift's time-outs for sending; the other node waits for
    its ``client_timeout``, 60 seconds.
    """

    _copy: ThrottledCopy

    def updates(self, connection: Any, response: Any, send_map: dict[str, Any]) -> None:
        """As Swift's: send the objects that the other node requests."""
        with self.daemon.throttle.open(self.job["device"]) as self._copy:
            super().updates(connection, response, send_map)

    def send_subrequest(self, connection: Any, method: str, url_path: str, headers: Any, df: Any) -> None:
        """As Swift's, with ``df`` the object to send, or None."""
        if df:
            # a fragment that is rebuilt here was read from as many other nodes as there are data fragments
            times = 1 + self.job["policy"].ec_ndata if isinstance(df, swift.RebuildingECDiskFileStream) else 1
            df = ThrottledFile(df, self._copy, times)
        super().send_subrequest(connection, method, url_path, headers, df)


class ThrottledFile:
    """A disk file for a sender; each piece is charged ``times`` times."""

    def __init__(self, file: Any, copy: ThrottledCopy, times: int = 1) -> None:
        self._file = file
        self._copy = copy
        self._times = times

    @property
    def content_length(self) -> int:
        """The number of bytes of its reader."""
        size: int = self._file.content_length
        return size

    def reader(self) -> Iterator[bytes]:
        """The pieces of the disk file."""
        for piece in self._file.reader():
            self._copy.acquire(len(piece) * self._times)
            yield piece


class ObjectReplicator(swift.ObjectReplicator):  # type: ignore[misc]
    """Swift's; ``throttle`` limits its bytes."""

    def __init__(self, conf: dict[str, Any], logger: Any = None) -> None:
        super().__init__(conf, logger)
        self.throttle = AgentThrottle(conf, self.logger)
        self._turns = green.FifoLock()
        #: Partition → bytes of the run that is about to start there.
        self._sizes: dict[str, float] = {}

    def ssync(self, node: Any, job: Any, suffixes: Any, remote_check_objs: Any = None) -> tuple[bool, dict[str, Any]]:
        """As Swift's does."""
        found: tuple[bool, dict[str, Any]] = Sender(self, node, job, suffixes, remote_check_objs)()
        return found

    def rsync(self, node: Any, job: Any, suffixes: list[str]) -> tuple[bool, dict[str, Any]]:
        """As Swift's; under a cap in several runs, each at the rate of its time."""
        with self.throttle.open(job["device"]) as copy:
            rate = copy.rate()
            sizes = {} if rate is None else green.run_in_thread(suffix_sizes, Path(job["path"]), suffixes)
            if rate is None or not sizes:
                return self._run(node, job, suffixes)
            if sum(sizes.values()) > rate:
                copy.wait_for_share()
            for one in split_runs(sizes, copy.rate() or rate):
                self._sizes[job["path"]] = sum(sizes[suffix] for suffix in one)
                success, _ = self._run(node, job, one)
                if not success:
                    return False, {}
            return True, {}

    def _run(self, node: Any, job: Any, suffixes: list[str]) -> tuple[bool, dict[str, Any]]:
        found: tuple[bool, dict[str, Any]] = super().rsync(node, job, suffixes)
        return found

    def _rsync(self, args: list[str]) -> int:
        """Run rsync as Swift does, and count the bytes that it moved."""
        size = self._sizes.pop(os.path.dirname(args[-2]), math.inf)
        with self.throttle.open(self._device(args)) as copy:
            if copy.rate() is None:
                return self._watched(args, copy)
            with self._turns:
                copy.wait_for_debt()
                rate = copy.rate()
                limit = None if rate is None else run_rate(size, rate)
                if rate is not None and not is_short(size, rate):
                    with copy.held_back():
                        return self._watched(args, copy, limit)
                if rate is not None:
                    copy.reserve(int(size))
            return self._watched(args, copy, limit)

    def _watched(self, args: list[str], copy: ThrottledCopy, limit: float | None = None) -> int:
        with tempfile.TemporaryDirectory(prefix="sluice-rsync-") as folder:
            log = Path(folder) / "log"
            with RsyncMeter(log, copy):
                status: int = super()._rsync(limited_command(args, limit, log))
                return status

    def _device(self, args: list[str]) -> str:
        """The device of the command line's last source."""
        return Path(args[-2]).relative_to(self.devices_dir).parts[0]


class ObjectReconstructor(swift.ObjectReconstructor):  # type: ignore[misc]
    """Swift's, with a ``throttle`` for its sender."""

    def __init__(self, conf: dict[str, Any], logger: Any = None) -> None:
        super().__init__(conf, logger)
        self.throttle = AgentThrottle(conf, self.logger)


def replicator() -> None:
    """The program ``sluice-object-replicator``: Swift's, with its class replaced by this one."""
    _refuse_two_distributions("sluice-object-replicator")
    swift.replicator_program.ObjectReplicator = ObjectReplicator
    swift.replicator_program.main()


def reconstructor() -> None:
    """The program ``sluice-object-reconstructor``; Swift's class calls the sender by its name in that module."""
    _refuse_two_distributions("sluice-object-reconstructor")
    swift.reconstructor_program.ObjectReconstructor = ObjectReconstructor
    swift.reconstructor_program.ssync_sender = Sender
    swift.reconstructor_program.main()


def _refuse_two_distributions(program: str) -> None:
    try:
        refuse_two_distributions()
    except SluiceError as error:
        sys.exit(f"{program}: {error}")
