"""``sluice-object-replicator`` and ``sluice-object-reconstructor``: Swift's, whose copies are counted and capped.

They take the same command line and configuration as Swift's programs.  Without a cap on replication they do what these
do; the agent is the one of ``[DEFAULT] sluice_agent_socket``, as for disk files.
"""

from __future__ import annotations

import math
import os
import tempfile
from pathlib import Path
from typing import Any

from sluice_middleware.replication import ssync_throttle
from sluice_middleware.replication.replication_throttle import AgentThrottle, Throttle, ThrottledCopy
from sluice_middleware.replication.rsync_throttle import FifoLock, RsyncMeter, in_runs, limited, pace, short, sizes_of
from sluice_middleware.swift import daemon_api as swift
from sluice_middleware.swift import green


class ObjectReplicator(swift.ObjectReplicator):  # type: ignore[misc]
    """Swift's; ``payer`` says how much may move."""

    def __init__(self, conf: dict[str, Any], logger: Any = None) -> None:
        super().__init__(conf, logger)
        self.payer: Throttle = AgentThrottle(conf, self.logger)
        self._turns = FifoLock()
        #: Partition → bytes of the run that is about to begin there.
        self._sizes: dict[str, float] = {}

    def ssync(self, node: Any, job: Any, suffixes: Any, remote_check_objs: Any = None) -> tuple[bool, dict[str, Any]]:
        """As of Swift's."""
        found: tuple[bool, dict[str, Any]] = ssync_throttle.Sender(self, node, job, suffixes, remote_check_objs)()
        return found

    def rsync(self, node: Any, job: Any, suffixes: list[str]) -> tuple[bool, dict[str, Any]]:
        """As of Swift's; under a cap in several runs, each at the rate of its time."""
        with self.payer.open(job["device"]) as payment:
            rate = payment.rate()
            sizes = {} if rate is None else green.in_thread(sizes_of, Path(job["path"]), suffixes)
            if rate is None or not sizes:
                return self._run(node, job, suffixes)
            if sum(sizes.values()) > rate:
                payment.settle()
            for one in in_runs(sizes, payment.rate() or rate):
                self._sizes[job["path"]] = sum(sizes[suffix] for suffix in one)
                success, _ = self._run(node, job, one)
                if not success:
                    return False, {}
            return True, {}

    def _run(self, node: Any, job: Any, suffixes: list[str]) -> tuple[bool, dict[str, Any]]:
        found: tuple[bool, dict[str, Any]] = super().rsync(node, job, suffixes)
        return found

    def _rsync(self, args: list[str]) -> int:
        """As of Swift's: run it, and count what it moved."""
        size = self._sizes.pop(os.path.dirname(args[-2]), math.inf)
        with self.payer.open(self._device(args)) as payment:
            if payment.rate() is None:
                return self._watched(args, payment)
            with self._turns:
                payment.clear()
                rate = payment.rate()
                limit = None if rate is None else pace(size, rate)
                if rate is not None and not short(size, rate):
                    with payment.held():
                        return self._watched(args, payment, limit)
                if rate is not None:
                    payment.reserve(int(size))
            return self._watched(args, payment, limit)

    def _watched(self, args: list[str], payment: ThrottledCopy, limit: float | None = None) -> int:
        with tempfile.TemporaryDirectory(prefix="sluice-rsync-") as folder:
            log = Path(folder) / "log"
            with RsyncMeter(log, payment):
                status: int = super()._rsync(limited(args, limit, log))
                return status

    def _device(self, args: list[str]) -> str:
        """Of the command line's last source."""
        return Path(args[-2]).relative_to(self.devices_dir).parts[0]


class ObjectReconstructor(swift.ObjectReconstructor):  # type: ignore[misc]
    """Swift's, with a ``payer`` for its sender."""

    def __init__(self, conf: dict[str, Any], logger: Any = None) -> None:
        super().__init__(conf, logger)
        self.payer: Throttle = AgentThrottle(conf, self.logger)


def replicator() -> None:
    """The program ``sluice-object-replicator``: Swift's, with our class in the place of its own."""
    swift.replicator_program.ObjectReplicator = ObjectReplicator
    swift.replicator_program.main()


def reconstructor() -> None:
    """The program ``sluice-object-reconstructor``; Swift's class calls the sender by its name in that module."""
    swift.reconstructor_program.ObjectReconstructor = ObjectReconstructor
    swift.reconstructor_program.ssync_sender = ssync_throttle.Sender
    swift.reconstructor_program.main()
