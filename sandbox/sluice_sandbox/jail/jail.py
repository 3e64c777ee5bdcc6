"""One jailed process: bubblewrap, seccomp, resource limits, control groups, an unprivileged user.

What is inside: own user, mount, process, network, IPC, host name and control group namespaces, no
capabilities, a read-only root of our own making (``root``) without ``/proc``, without anything to
write to, and the descriptors that were given on purpose.  A jail dies with the process that made it.
"""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from sluice_sandbox.jail import seccomp as jail_seccomp
from sluice_sandbox.jail.cgroups import ControlGroup
from sluice_sandbox.jail.root import JailUnavailable
from sluice_sandbox.limits import Limits

NOBODY: Final = 65534
_DESCRIPTORS: Final = 600
#: Address space of an interpreter with its libraries, before any filter.
_BASE: Final = 192 * 1024 * 1024
_PROCESSES: Final = 3


@dataclass(frozen=True, slots=True)
class Jail:
    """How to start a process in a jail with the root file system ``root``.

    ``uid`` is whom it runs as outside, None for the user who starts it.  ``slot`` numbers the jails of one
    supervisor.
    """

    root: Path
    limits: Limits
    uid: int | None = None
    group: ControlGroup | None = None
    slot: int = 0

    def command(self, seccomp: int | None = None) -> list[str]:
        """bubblewrap's arguments, up to the command that runs in the jail.

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
        """Run ``command``, which inherits ``descriptors``; what it says on stderr goes to ``errors``.

        :raises JailUnavailable: when bubblewrap is not there or cannot be started
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
        """What the new process does to itself, limits before rights."""
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
    """Where it is.

    :raises JailUnavailable: when it is not installed
    """
    found = shutil.which("bwrap")
    if found is None:
        raise JailUnavailable("bubblewrap is not installed (program `bwrap`, Debian package `bubblewrap`)")
    return found


def _memory(data: bytes) -> int:
    descriptor = os.memfd_create("seccomp", os.MFD_CLOEXEC)
    os.write(descriptor, data)
    os.lseek(descriptor, 0, os.SEEK_SET)
    return descriptor
