"""Memory, processor and process limits of a tenant's workers by control groups, where there are any.

Version 1 and version 2 are both found by looking.  A group is made below the one that this process is
in, so whoever delegates (systemd, a container) stays master.  In version 2 a group with members cannot
pass controllers on, hence the supervisor first moves itself into a leaf.  What is missing is told
once: resource limits and the watchdog remain.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from sluice_sandbox.limits import Limits

CONTROLLERS: Final = ("memory", "pids", "cpu")
#: All workers of a tenant weigh as much as one other process: less would let requests wait on a busy node.
_SHARES_V1: Final = 1024
_WEIGHT_V2: Final = 100
_log = logging.getLogger(__name__)


class ControlGroup:
    """The control groups of one tenant, one per hierarchy."""

    def __init__(self, folders: Mapping[str, Path]) -> None:
        self._folders = dict(folders)

    def members(self) -> list[int]:
        """Descriptors to write ``0`` to for whoever wants to enter; the caller closes them."""
        paths = sorted({folder / "cgroup.procs" for folder in self._folders.values()})
        return [os.open(path, os.O_WRONLY | os.O_CLOEXEC) for path in paths]

    def limit(self, limits: Limits) -> None:
        """Set what the tenant may use in all."""
        # a worker is three processes: bubblewrap's two and the interpreter
        pids = str(limits.workers * (2 + limits.processes))
        memory = str(limits.memory * limits.workers)
        # the files of both versions: each has its own names
        values = {
            "memory": {
                "memory.limit_in_bytes": memory,
                "memory.swappiness": "0",
                "memory.max": memory,
                "memory.swap.max": "0",
            },
            "cpu": {"cpu.shares": str(_SHARES_V1), "cpu.weight": str(_WEIGHT_V2)},
            "pids": {"pids.max": pids},
        }
        for controller, folder in self._folders.items():
            for name, value in values[controller].items():
                if (folder / name).exists():
                    (folder / name).write_text(value)

    def remove(self) -> None:
        """Take the groups away; members must have ended."""
        for folder in set(self._folders.values()):
            try:
                folder.rmdir()
            except OSError as error:
                _log.warning("control group `%s` stays behind: %s", folder, error.strerror)


class ControlGroups:
    """Where this process may make groups; ``available`` says for which controllers."""

    def __init__(self, mount: Path = Path("/sys/fs/cgroup"), own: Path = Path("/proc/self/cgroup")) -> None:
        self._bases: dict[str, Path] = {}
        self._mount = mount
        self._own = own

    @property
    def available(self) -> tuple[str, ...]:
        """The controllers that limit something here."""
        return tuple(sorted(self._bases))

    def open(self) -> None:
        """Find out what there is, and say what is not."""
        lines = self._own.read_text().splitlines() if self._own.exists() else []
        places = [line.split(":", 2) for line in lines]
        for _, names, path in places:
            for name in names.split(","):
                folder = self._mount / name / path.lstrip("/")
                if name in CONTROLLERS and os.access(folder / "cgroup.procs", os.W_OK):
                    self._bases[name] = folder
        if not self._bases and (self._mount / "cgroup.controllers").exists():
            unified = next((path for number, _, path in places if number == "0"), "/")
            self._delegate(self._mount / unified.lstrip("/"))
        missing = [name for name in CONTROLLERS if name not in self._bases]
        if missing:
            _log.warning("no control group for %s: isolated filters are held by other limits", ", ".join(missing))

    def group(self, name: str, limits: Limits) -> ControlGroup:
        """A new group of that name, with its limits."""
        folders = {controller: base / f"sluice-{os.getpid()}-{name}" for controller, base in self._bases.items()}
        for folder in set(folders.values()):
            folder.mkdir(exist_ok=True)
        made = ControlGroup(folders)
        made.limit(limits)
        return made

    def _delegate(self, base: Path) -> None:
        """Version 2: step aside, then pass the controllers on."""
        try:
            leaf = base / "supervisor"
            leaf.mkdir(exist_ok=True)
            (leaf / "cgroup.procs").write_text(str(os.getpid()))
            offered = (base / "cgroup.controllers").read_text().split()
            wanted = [name for name in CONTROLLERS if name in offered]
            (base / "cgroup.subtree_control").write_text(" ".join(f"+{name}" for name in wanted))
        except OSError as error:
            _log.warning("control group `%s` is not delegated to us: %s", base, error.strerror)
            return
        self._bases = dict.fromkeys(wanted, base)
