"""``systemctl`` of the scratch root, where no systemd runs: starts, stops and shows units.

It reads the unit files of Debian's packages and those that DevStack writes.  Of what systemd knows it has as much as
these need: the user, the environment, the folder below /run, readiness that a service announces itself, and whether
all processes of a unit are ended or the first one alone (``KillMode``).
"""

from __future__ import annotations

import configparser
import os
import pwd
import shlex
import shutil
import signal
import socket
import sys
import time
from pathlib import Path

UNITS = (Path("/etc/systemd/system"), Path("/lib/systemd/system"))
STATE = Path("/run/units")
LOGS = Path("/opt/stack/logs/units")
#: Seconds for a service to say that it is ready, and to end.
PATIENCE = 120.0


class Unit:
    """One service."""

    def __init__(self, name: str) -> None:
        self.name = name if name.endswith(".service") else f"{name}.service"
        parser = configparser.ConfigParser(strict=False, interpolation=None)
        parser.read(folder / self.name for folder in reversed(UNITS))
        if not parser.has_section("Service"):
            raise SystemExit(f"systemctl: no unit `{self.name}`")
        self.service = parser["Service"]
        self.enabled = STATE / f"{self.name}.enabled"
        self._pid = STATE / f"{self.name}.pid"

    def pid(self) -> int:
        """Its first process; 0 when it does not run."""
        try:
            pid = int(self._pid.read_text())
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            return 0
        return 0 if state == "Z" else pid

    def start(self) -> None:
        """Start it, and wait until it is ready where it says so itself."""
        if self.pid():
            return
        STATE.mkdir(exist_ok=True)
        LOGS.mkdir(exist_ok=True)
        user = pwd.getpwnam(self.service.get("User", "root"))
        environment = {"HOME": user.pw_dir, "USER": user.pw_name, "PATH": os.environ["PATH"]}
        environment |= dict(one.split("=", 1) for one in shlex.split(self.service.get("Environment", "")))
        for folder in self.service.get("RuntimeDirectory", "").split():
            path = Path("/run") / folder
            path.mkdir(exist_ok=True)
            os.chown(path, user.pw_uid, user.pw_gid)
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as ready:
            place = STATE / f"{self.name}.notify"
            place.unlink(missing_ok=True)
            ready.bind(str(place))
            place.chmod(0o666)
            notifies = self.service.get("Type") == "notify"
            if notifies:
                environment["NOTIFY_SOCKET"] = str(place)
            pid = self._spawn(user, environment)
            self._pid.write_text(str(pid))
            while notifies and b"READY=1" not in self._hear(ready):
                pass

    def _hear(self, ready: socket.socket) -> bytes:
        ready.settimeout(PATIENCE)
        try:
            return ready.recv(4096)
        except TimeoutError:
            raise SystemExit(f"systemctl: `{self.name}` is not ready after {PATIENCE:.0f} seconds") from None

    def _spawn(self, user: pwd.struct_passwd, environment: dict[str, str]) -> int:
        command = shlex.split(self.service["ExecStart"])
        pid = os.fork()
        if pid:
            return pid
        os.setsid()
        log = os.open(LOGS / f"{self.name}.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        for descriptor, source in ((0, os.open("/dev/null", os.O_RDONLY)), (1, log), (2, log)):
            os.dup2(source, descriptor)
        os.closerange(3, 256)
        os.chdir(self.service.get("WorkingDirectory", "/"))
        os.initgroups(user.pw_name, user.pw_gid)
        os.setgid(user.pw_gid)
        os.setuid(user.pw_uid)
        try:
            os.execve(shutil.which(command[0]) or command[0], command, environment)  # noqa: S606 - no shell
        finally:
            os._exit(203)  # as systemd does

    def stop(self) -> None:
        """End it; its children, too, unless the unit says that they are none of systemd's business."""
        pid = self.pid()
        if not pid:
            return
        os.kill(pid, signal.SIGTERM)
        end = time.monotonic() + PATIENCE
        while self.pid() == pid:
            if time.monotonic() > end:
                os.kill(pid, signal.SIGKILL)
            time.sleep(0.05)
        if self.service.get("KillMode") != "process":
            try:
                os.killpg(pid, signal.SIGKILL)
            except ProcessLookupError:
                return


def main() -> int:
    """What systemctl's exit status would be."""
    words = [word for word in sys.argv[1:] if not word.startswith("-")]
    verb, names = words[0], words[1:]
    if verb == "daemon-reload":
        return 0
    unit = Unit(names[0])
    if verb in ("stop", "restart", "reload-or-restart"):
        unit.stop()
    if verb in ("start", "restart", "reload-or-restart"):
        unit.start()
    elif verb == "enable":
        STATE.mkdir(exist_ok=True)
        unit.enabled.touch()
    elif verb == "disable":
        unit.enabled.unlink(missing_ok=True)
    elif verb == "is-enabled":
        return 0 if unit.enabled.exists() else 1
    elif verb in ("status", "is-active"):
        print(f"{unit.name}: {unit.pid() or 'not running'}")
        return 0 if unit.pid() else 3
    elif verb != "stop":
        raise SystemExit(f"systemctl: `{verb}` is not known in the scratch root")
    return 0


if __name__ == "__main__":
    sys.exit(main())
