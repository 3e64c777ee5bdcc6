"""One jailed process: bubblewrap, seccomp, resource limits, control groups, an unprivileged user.

A jail has its own user, mount, process, network, IPC, host name and control group namespaces, no capabilities, a
read-only root (``root``) without ``/proc`` and without writable files, and only the descriptors that were passed to it.
A jail ends with the process that made it.

Control groups, where available, limit memory, processor and processes of a tenant's workers.

Version 1 and version 2 are both detected.  A group is made below the group of this process, so that the delegating
process (systemd, a container) keeps control.  In version 2 a group with members cannot pass controllers on, hence the
supervisor first moves itself into a leaf.  Missing controllers are logged once: resource limits and the watchdog
remain.
"""

from __future__ import annotations

import logging
import os
import resource
import shutil
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from sluice_sandbox.jail import seccomp as jail_seccomp
from sluice_sandbox.jail.root import JailUnavailable
from sluice_sandbox.limits import Limits

CONTROLLERS: Final = ("memory", "pids", "cpu")
#: All workers of a tenant weigh as much as one other process: a lower weight would delay requests on a busy node.
_SHARES_V1: Final = 1024
_WEIGHT_V2: Final = 100
_log = logging.getLogger(__name__)


class ControlGroup:
    """The control groups of one tenant, one per hierarchy."""

    def __init__(self, folders: Mapping[str, Path]) -> None:
        self._folders = dict(folders)

    def members(self) -> list[int]:
        """Descriptors to which a process writes ``0`` to enter the groups; the caller closes them."""
        paths = sorted({folder / "cgroup.procs" for folder in self._folders.values()})
        return [os.open(path, os.O_WRONLY | os.O_CLOEXEC) for path in paths]

    def limit(self, limits: Limits) -> None:
        """Set the total limits of the tenant."""
        # a worker is three processes: bubblewrap's two and the interpreter
        pids = str(limits.workers * (2 + limits.processes))
        memory = str(limits.memory * limits.workers)
        # the files of both versions: the names differ
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
        """Remove the groups, whose members must have ended."""
        for folder in set(self._folders.values()):
            try:
                folder.rmdir()
            except OSError as error:
                _log.warning("control group `%s` stays behind: %s", folder, error.strerror)


class ControlGroups:
    """Where this process may make groups; ``available`` lists the controllers."""

    def __init__(self, mount: Path = Path("/sys/fs/cgroup"), own: Path = Path("/proc/self/cgroup")) -> None:
        self._bases: dict[str, Path] = {}
        self._mount = mount
        self._own = own

    @property
    def available(self) -> tuple[str, ...]:
        """The controllers that set limits here."""
        return tuple(sorted(self._bases))

    def open(self) -> None:
        """Find the available controllers, and log the missing ones."""
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
        """Make a group of that name, with its limits."""
        folders = {controller: base / f"sluice-{os.getpid()}-{name}" for controller, base in self._bases.items()}
        for folder in set(folders.values()):
            folder.mkdir(exist_ok=True)
        made = ControlGroup(folders)
        made.limit(limits)
        return made

    def _delegate(self, base: Path) -> None:
        """Version 2: move this process into a leaf, then pass the controllers on."""
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


NOBODY: Final = 65534
_DESCRIPTORS: Final = 600
#: Address space of an interpreter with its libraries, without filters.
_BASE: Final = 192 * 1024 * 1024
_PROCESSES: Final = 3


@dataclass(frozen=True, slots=True)
class Jail:
    """How to start a process in a jail with the root file system ``root``.

    ``uid`` is its user outside, None for the user of this process.  ``slot`` numbers the jails of one
    supervisor.
    """

    root: Path
    limits: Limits
    uid: int | None = None
    group: ControlGroup | None = None
    slot: int = 0

    def command(self, seccomp: int | None = None) -> list[str]:
        """Return bubblewrap's arguments, up to the command that runs in the jail.

        :param seccomp: a descriptor of the program of system calls
        """
        return [
            bubblewrap(),
            *("--unshare-all", "--die-with-parent", "--as-pid-1", "--new-session", "--clearenv", "--cap-drop", "ALL"),
            *("--uid", str(NOBODY), "--gid", str(NOBODY), "--hostname", "jail"),
            *("--ro-bind", str(self.root), "/", "--dev-bind", "/dev/null", "/dev/null"),
            *("--dev-bind", "/dev/urandom", "/dev/urandom", "--chdir", "/"),
            *("--setenv", "LD_LIBRARY_PATH", "/lib", "--setenv", "LANG", "C.UTF-8"),
            *(("--seccomp", str(seccomp)) if seccomp is not None else ()),
        ]

    def start(self, command: Sequence[str], descriptors: Sequence[int], errors: int) -> subprocess.Popen[bytes]:
        """Run ``command``, which inherits ``descriptors``; its stderr goes to ``errors``.

        :raises JailUnavailable: when bubblewrap is missing or cannot be started
        """
        program = jail_seccomp.program()
        seccomp = [_memory(program)] if program else []
        groups = self.group.members() if self.group else []
        try:
            return subprocess.Popen(
                [*self.command(*seccomp), *command],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=errors,
                pass_fds=[*descriptors, *seccomp],
                preexec_fn=self._entering(groups),
                env={},
                cwd="/",
            )
        except (OSError, subprocess.SubprocessError) as error:
            raise JailUnavailable(f"bubblewrap does not start: {error}") from error
        finally:
            for one in (*groups, *seccomp):
                os.close(one)

    def _entering(self, groups: Sequence[int]) -> Callable[[], None]:
        """Return the function that the new process calls, which sets limits before it drops rights."""
        space = self.limits.memory + _BASE
        processes = self.limits.workers * (_PROCESSES + self.limits.processes)
        bounds = (
            (resource.RLIMIT_AS, space),
            (resource.RLIMIT_CORE, 0),
            (resource.RLIMIT_FSIZE, 0),
            (resource.RLIMIT_NOFILE, _DESCRIPTORS),
            (resource.RLIMIT_MEMLOCK, 0),
            *(((resource.RLIMIT_NPROC, processes),) if self.uid is not None else ()),
        )

        def enter() -> None:
            for one in groups:
                os.write(one, b"0")
            for name, value in bounds:
                resource.setrlimit(name, (value, value))
            if self.uid is not None:
                os.setgroups([])
                os.setresgid(self.uid, self.uid, self.uid)
                os.setresuid(self.uid, self.uid, self.uid)

        return enter


def bubblewrap() -> str:
    """The path of bubblewrap.

    :raises JailUnavailable: when it is not installed
    """
    program = shutil.which("bwrap")
    if program is None:
        raise JailUnavailable("bubblewrap is not installed (program `bwrap`, Debian package `bubblewrap`)")
    return program


def _memory(data: bytes) -> int:
    descriptor = os.memfd_create("seccomp", os.MFD_CLOEXEC)
    os.write(descriptor, data)
    os.lseek(descriptor, 0, os.SEEK_SET)
    return descriptor
