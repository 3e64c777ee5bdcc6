"""``systemctl`` of a scratch root, where no systemd runs: starts, stops and shows units.

It reads the unit files of Debian's packages, of DevStack and of ours.  Of what systemd knows it has as much as these
need: instances of templates, the user, the environment, the folder below /run, readiness that a service announces
itself (``Type=notify``), signs of life (``WatchdogSec=``), another start of what failed (``Restart=``), a command for
when it has ended (``ExecStopPost=``), whether all processes of a unit are ended or the first one alone
(``KillMode=``), and the confinement that our units ask for.

Each running unit has a keeper, a process of this program, which starts it, receives its messages, and restarts it.
"""

from __future__ import annotations

import configparser
import contextlib
import fnmatch
import itertools
import os
import pwd
import select
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path

UNITS = (Path("/etc/systemd/system"), Path("/lib/systemd/system"))
STATE = Path("/run/units")
LOGS = Path("/var/log/units")
#: Seconds for a service to become ready, and to stop.
PATIENCE = 120.0
#: Seconds for a hanging service to end by itself.
ABORTING = 5.0
#: Option and value → what makes the file tree of a service so, by a shell in a mount namespace of its own.
FILE_TREE = {
    ("PrivateTmp", "yes"): "mount -t tmpfs -o mode=1777 tmpfs /tmp",
    ("ProtectSystem", "full"): "for one in /usr /etc; do mount --bind $one $one; mount -o remount,bind,ro $one; done",
    ("ProtectKernelTunables", "yes"): """\
for one in /proc/sys /sys; do mount --rbind $one $one; mount -o remount,bind,ro $one; done""",
    ("ProtectControlGroups", "yes"): """\
for one in $(cut -d' ' -f2 /proc/self/mounts | grep ^/sys/fs/cgroup); do mount -o remount,bind,ro $one; done""",
    ("PrivateDevices", "yes"): """\
mount -t tmpfs -o mode=755 tmpfs /mnt
for one in null zero full random urandom tty; do cp -a /dev/$one /mnt/; done
for one in shm pts; do mkdir /mnt/$one; mount --rbind /dev/$one /mnt/$one; done
ln -s /proc/self/fd /mnt/fd
mount --move /mnt /dev""",
}


class Unit:
    """One service."""

    def __init__(self, name: str) -> None:
        self.name = name if name.endswith(".service") else f"{name}.service"
        template, at, instance = self.name.removesuffix(".service").partition("@")
        parser = configparser.ConfigParser(strict=False, interpolation=None)
        parser.optionxform = str  # type: ignore[assignment, method-assign]
        files = dict.fromkeys((f"{template}{at}.service", self.name))  # DevStack's units are called as instances
        parser.read(folder / file for file in files for folder in reversed(UNITS))
        if not parser.has_section("Service"):
            raise SystemExit(f"systemctl: no unit `{self.name}`")
        self.service = {
            option: "yes" if value == "true" else value.replace("%i", instance)
            for option, value in parser["Service"].items()
        }
        self.conflicts = parser.get("Unit", "Conflicts", fallback="").split()
        self.enabled = STATE / f"{self.name}.enabled"
        self._pid = STATE / f"{self.name}.pid"
        self._keeper = STATE / f"{self.name}.keeper"
        self._restarts = STATE / f"{self.name}.restarts"

    def pid(self) -> int:
        """Its first process; 0 when it does not run."""
        return running(self._pid)

    def start(self) -> None:
        """Start it, and wait until it is ready if it announces that itself."""
        if self.pid():
            return
        for other in self.conflicts:
            if any((folder / other).exists() for folder in UNITS):
                Unit(other).stop()
        LOGS.mkdir(exist_ok=True)
        read, write = os.pipe()
        keeper = os.fork()
        if not keeper:
            os.setsid()
            os.close(read)
            nothing = os.open("/dev/null", os.O_RDWR)
            for descriptor in range(3):
                os.dup2(nothing, descriptor)
            self._keep(lambda: os.write(write, b"1") and os.close(write))
            os._exit(0)
        self._keeper.write_text(str(keeper))
        os.close(write)
        with open(read, "rb") as ready:
            if not ready.read():
                raise SystemExit(f"systemctl: `{self.name}` is not ready:\n{self._log().read_text()[-3000:]}")

    def restarts(self) -> int:
        """The number of its restarts since the last start by command."""
        return int(self._restarts.read_text()) if self._restarts.exists() else 0

    def _log(self) -> Path:
        return LOGS / f"{self.name}.log"

    def _keep(self, announce: Callable[[], object]) -> None:
        """The keeper: start the service, call ``announce`` when it is ready, and restart it if its unit says so."""
        for number in itertools.count():
            self._restarts.write_text(str(number))
            status = self._run_once(announce if not number else lambda: None)
            self._end()
            wanted = self.service.get("Restart", "no")
            if status is None or wanted == "no" or (wanted == "on-failure" and status == 0):
                return
            time.sleep(float(self.service.get("RestartSec", "0.1").rstrip("s")))

    def _run_once(self, announce: Callable[[], object]) -> int | None:
        """Its exit status; None when it has ended without having been ready."""
        place = STATE / f"{self.name}.notify"
        place.unlink(missing_ok=True)
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as hears:
            hears.bind(str(place))
            place.chmod(0o666)
            pid = self._spawn(str(place))
            self._pid.write_text(str(pid))
            is_ready = self.service.get("Type") != "notify"
            if is_ready:
                announce()
            limit, ended = 0.0 if is_ready else PATIENCE, os.pidfd_open(pid)
            ends = itertools.chain([signal.SIGABRT], itertools.repeat(signal.SIGKILL))
            while True:
                found, _, _ = select.select([hears, ended], [], [], limit or None)
                if ended in found:
                    os.close(ended)
                    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
                    return status if is_ready else None
                if not found:  # neither ready nor a watchdog message
                    os.kill(pid, next(ends))
                    limit = ABORTING
                elif b"READY=1" in hears.recv(4096) and not is_ready:
                    is_ready, limit = True, float(self.service.get("WatchdogSec", "0"))
                    announce()

    def _spawn(self, place: str) -> int:
        user = pwd.getpwnam(self.service.get("User", "root"))
        environment = self._environment(user)
        if self.service.get("Type") == "notify":
            environment["NOTIFY_SOCKET"] = place
        if seconds := float(self.service.get("WatchdogSec", "0")):
            environment["WATCHDOG_USEC"] = str(int(seconds * 1e6))
        for folder in self.service.get("RuntimeDirectory", "").split():
            path = Path("/run") / folder
            path.mkdir(exist_ok=True)
            os.chown(path, user.pw_uid, user.pw_gid)
        command = self._confined(user, environment)
        pid = os.fork()
        if pid:
            return pid
        os.setsid()
        log = os.open(self._log(), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        for descriptor, source in ((0, os.open("/dev/null", os.O_RDONLY)), (1, log), (2, log)):
            os.dup2(source, descriptor)
        os.closerange(3, 256)
        os.chdir(self.service.get("WorkingDirectory", "/"))
        os.umask(int(self.service.get("UMask", "0022"), 8))
        try:
            os.execve(shutil.which(command[0]) or command[0], command, environment)  # noqa: S606 - no shell
        finally:
            os._exit(203)  # as systemd does

    def _environment(self, user: pwd.struct_passwd) -> dict[str, str]:
        environment = {"HOME": user.pw_dir, "USER": user.pw_name, "PATH": os.environ["PATH"]}
        stated = shlex.split(self.service.get("Environment", ""))
        file = self.service.get("EnvironmentFile", "-")
        if not file.startswith("-") or Path(file[1:]).is_file():  # behind a `-` it may be missing
            stated += shlex.split(Path(file.lstrip("-")).read_text(), comments=True)
        return environment | dict(one.split("=", 1) for one in stated)

    def _end(self) -> None:
        """What a unit has done when its service has ended, whatever comes of it."""
        if line := self.service.get("ExecStopPost"):
            environment = self._environment(pwd.getpwnam("root"))
            with open(self._log(), "ab") as log:
                subprocess.run(words(line, environment), env=environment, stdout=log, stderr=log, check=False)

    def _confined(self, user: pwd.struct_passwd, environment: dict[str, str]) -> list[str]:
        """The command, behind those that take from it what the unit does not let it have."""
        command = words(self.service["ExecStart"], environment)
        become = ["setpriv", f"--reuid={user.pw_uid}", f"--regid={user.pw_gid}", "--init-groups"]
        if self.service.get("NoNewPrivileges") == "yes":
            become.append("--no-new-privs")
        if self.service.get("CapabilityBoundingSet") == "":
            become += ["--bounding-set=-all", "--inh-caps=-all"]
        command = become + command
        mounts = [text for (option, value), text in FILE_TREE.items() if self.service.get(option) == value]
        if mounts:
            return ["unshare", "--mount", "sh", "-ec", "\n".join([*mounts, 'exec "$@"']), "sh", *command]
        return command

    def stop(self) -> None:
        """Stop it; its children, too, unless the unit says otherwise."""
        if keeper := running(self._keeper):
            os.kill(keeper, signal.SIGKILL)
        pid = self.pid()
        if not pid:
            return
        ended = os.pidfd_open(pid)
        for number in (signal.SIGTERM, signal.SIGKILL):
            os.kill(pid, number)
            if select.select([ended], [], [], PATIENCE)[0]:
                break
        os.close(ended)
        if self.service.get("KillMode") != "process":
            with contextlib.suppress(ProcessLookupError):
                os.killpg(pid, signal.SIGKILL)
        self._end()


def words(line: str, environment: Mapping[str, str]) -> list[str]:
    """A command with its variables: ``$OPTIONS`` is none or several words, ``${FOLDER}`` is one."""
    found: list[str] = []
    for word in shlex.split(line.lstrip("!-+@")):
        if word.startswith("${"):
            found.append(environment.get(word[2:-1], ""))
        else:
            found += environment.get(word[1:], "").split() if word.startswith("$") else [word]
    return found


def running(path: Path) -> int:
    """The process whose number is in a file; 0 when it does not run."""
    try:
        pid = int(path.read_text())
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (OSError, ValueError):  # a file without a number is being written
        return 0
    return 0 if state == "Z" else pid


def matching(name: str) -> list[str]:
    """The unit of this name; of a pattern, the running ones."""
    if "*" not in name:
        return [name]
    found = (path.name.removesuffix(".service.pid") for path in STATE.glob("*.service.pid") if running(path))
    return sorted(one for one in found if fnmatch.fnmatchcase(one, name))


def act(verb: str, name: str, now: bool) -> int:
    """Run one action on a unit; return the exit status."""
    unit = Unit(name)
    if verb in ("stop", "restart", "reload-or-restart") or (verb == "disable" and now):
        unit.stop()
    if verb in ("start", "restart", "reload-or-restart") or (verb == "enable" and now):
        unit.start()
    if verb == "enable":
        unit.enabled.touch()
    elif verb == "disable":
        unit.enabled.unlink(missing_ok=True)
    elif verb == "is-enabled":
        return 0 if unit.enabled.exists() else 1
    elif verb == "is-active":
        print("active" if unit.pid() else "inactive")
        return 0 if unit.pid() else 3
    elif verb == "show":
        print(f"NRestarts={unit.restarts()}")
    elif verb == "status":
        print(f"{unit.name}: {unit.pid() or 'not running'}")
        return 0 if unit.pid() else 3
    elif verb not in ("start", "stop", "restart", "reload-or-restart"):
        raise SystemExit(f"systemctl: `{verb}` is not known in a scratch root")
    return 0


def main() -> int:
    """Return systemctl's exit status."""
    words = [word for word in sys.argv[1:] if not word.startswith("-")]
    verb, names = words[0], words[1:]
    if verb == "daemon-reload":
        return 0
    STATE.mkdir(exist_ok=True)
    return max((act(verb, one, "--now" in sys.argv) for name in names for one in matching(name)), default=0)


if __name__ == "__main__":
    sys.exit(main())
