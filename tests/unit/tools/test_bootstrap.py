"""``tools/bootstrap`` on machines with missing parts, with apt-get and pip replaced by recorders of their calls."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

BOOTSTRAP = Path(__file__).resolve().parents[3] / "tools" / "bootstrap"
TOOLS = ("bash", "dirname", "cat", "sha256sum", "env", "tee", "chmod", "rm", "cut", "mkdir", "sleep", "stty", "tail")

FAKE_PYTHON = """\
#!/bin/bash
# an interpreter that makes "virtual environments" with itself in them, and notes what pip should do
case "$*" in
    *"-m venv"*) mkdir -p "${@: -1}/bin"; cp "$0" "${@: -1}/bin/python" ;;
    *"-m pip"*) echo "pip $*" >> "$NOTES" ;;
    *sys.version\\)*) echo "3.11.0" ;;
    *--version*) echo "Python 3.11.0" ;;
esac
"""


#: Runs the installation, without other actions that need root.
FAKE_SUDO = """\
#!/bin/bash
echo "sudo $*" >> "$NOTES"
case "$*" in *apt-get*) exec "$@" ;; esac
"""


class Machine:
    """A clone and a PATH with only the given files."""

    def __init__(self, folder):
        self.clone = folder / "clone"
        self.programs = folder / "bin"
        self.notes = folder / "notes"
        self.programs.mkdir()
        (self.clone / "tools").mkdir(parents=True)
        shutil.copy(BOOTSTRAP, self.clone / "tools" / "bootstrap")
        for name in ("setup.cfg", "pyproject.toml", "constraints.txt"):
            (self.clone / name).write_text(name)
        for tool in (*TOOLS, "cp"):
            (self.programs / tool).symlink_to(shutil.which(tool))
        self.program("python3", FAKE_PYTHON)

    def program(self, name, text="#!/bin/bash\nexit 0\n"):
        path = self.programs / name
        path.write_text(text)
        path.chmod(0o755)

    def user(self, number):
        self.program("id", f"#!/bin/bash\necho {number}\n")

    def complete(self):
        for name in ("redis-server", "memcached", "setpriv"):
            self.program(name)

    def run(self, *words):
        return subprocess.run(self.command(*words), env=self.environment, capture_output=True, text=True, check=False)

    def command(self, *words):
        return [str(self.programs / "bash"), str(self.clone / "tools" / "bootstrap"), *words]

    @property
    def environment(self):
        return {"PATH": str(self.programs), "NOTES": str(self.notes)}

    def log(self):
        return (self.clone / ".venv.log").read_text()

    def noted(self):
        return self.notes.read_text().splitlines() if self.notes.exists() else []


@pytest.fixture
def machine(tmp_path):
    return Machine(tmp_path)


def test_without_root_and_sudo_the_missing_packages_are_named(machine):
    machine.user(1000)
    result = machine.run()
    assert result.returncode == 1
    assert "root or sudo" in result.stderr
    assert "redis-server" in result.stderr
    assert machine.noted() == []


def test_with_sudo_the_missing_packages_are_installed_and_no_others(machine):
    machine.user(1000)
    machine.program("memcached")
    machine.program("setpriv")
    machine.program("apt-get")
    machine.program("sudo", '#!/bin/bash\necho "sudo $*" >> "$NOTES"\n')
    assert machine.run().returncode == 0
    (install,) = [line for line in machine.noted() if "apt-get install" in line]
    assert "redis-server" in install
    assert "memcached" not in install


def test_the_packages_of_ceph_are_installed_alone(machine):
    machine.user(1000)
    machine.program("apt-get")
    machine.program("sudo", '#!/bin/bash\necho "sudo $*" >> "$NOTES"\n')
    assert machine.run("ceph").returncode == 0
    (install,) = [line for line in machine.noted() if "apt-get install" in line]
    assert "redis-server" not in install
    assert not (machine.clone / ".venv").exists()


def test_what_apt_says_goes_into_the_log_and_steps_are_plain_lines(machine):
    machine.user(1000)
    machine.program("sudo", FAKE_SUDO)
    machine.program("apt-get", '#!/bin/bash\necho "apt: $*"\necho "apt complains" >&2\n')
    result = machine.run()
    assert result.returncode == 0
    steps = [line.removeprefix("bootstrap: ") for line in result.stderr.splitlines()]
    assert steps[0].startswith("these Debian packages are missing: redis-server")
    assert steps[1:] == [
        "reading Debian's package lists",
        "installing Debian packages",
        "making .venv with Python 3.11.0",
        "installing the tested versions of Python packages",
        "ready",
    ]
    assert machine.log().count("apt complains") == 2
    assert "apt: install -q -y --no-install-recommends redis-server" in machine.log()


def test_a_terminal_sees_one_line_that_moves(machine, tmp_path):
    seen = tmp_path / "seen"
    machine.user(1000)
    machine.program("sudo", FAKE_SUDO)
    waiting = f'echo "Unpacking erlang-base (1:25) ..."; until [ -e "{seen}" ]; do sleep 0.05; done; echo ended'
    machine.program("apt-get", f'#!/bin/bash\ncase "$*" in *install*) {waiting} ;; esac\n')
    ours, theirs = os.openpty()
    process = subprocess.Popen(machine.command(), env=machine.environment, stderr=theirs)
    os.close(theirs)
    shown = b""
    try:
        while b"unpacking erlang-base" not in shown:
            shown += os.read(ours, 4096)
        seen.touch()
        assert process.wait(60) == 0
        while b"ready" not in shown:
            shown += os.read(ours, 4096)
    finally:
        process.kill()
        process.wait()
        os.close(ours)
    assert re.search(rb"\r\x1b\[Kbootstrap: installing Debian packages, [0-9]+ s", shown)
    assert b"\r\x1b[Kbootstrap: ready" not in shown
    assert b"ended" not in shown
    assert "ended" in machine.log()


def test_a_failure_shows_the_end_of_the_log_and_where_it_is(machine):
    machine.user(1000)
    machine.program("sudo", FAKE_SUDO)
    lines = "for number in {1..40}; do echo line $number; done; exit 100"
    machine.program("apt-get", f'#!/bin/bash\ncase "$*" in *install*) {lines} ;; esac\n')
    result = machine.run()
    assert result.returncode == 1
    assert "bootstrap: installing Debian packages failed; the end of .venv.log:\nline 26\n" in result.stderr
    assert result.stderr.endswith("line 40\n")
    assert "line 25\n" in machine.log()
    assert not [line for line in machine.noted() if line.startswith("pip")]


def test_a_second_run_does_nothing_until_a_declaration_changes(machine):
    machine.user(0)
    machine.complete()
    machine.program("apt-get")
    if not Path("/usr/lib/rabbitmq/bin/rabbitmq-server").exists():
        pytest.fail("rabbitmq-server is not installed")
    assert machine.run().returncode == 0
    assert len(machine.noted()) == 1
    assert "constraints.txt" in machine.noted()[0]
    assert machine.run().stderr == ""
    assert len(machine.noted()) == 1
    (machine.clone / "setup.cfg").write_text("another")
    assert machine.run().returncode == 0
    assert len(machine.noted()) == 2


def test_what_only_the_tests_need_is_added_to_what_is_there(machine):
    machine.user(0)
    machine.complete()
    machine.program("apt-get")
    slow_disks = ("mkfs.xfs", "mkfs.ext4", "nbdkit", "nbdfuse", "fusermount3", "pkg-config")
    volumes = ("qemu-io", "qemu-storage-daemon", "fio")
    devstack = ("sudo", "curl", "gawk", "lsb_release")
    shells = ("zsh", "fish")
    for name in (
        "bwrap",
        "dockerd",
        "debootstrap",
        "gcc",
        "make",
        "rsync",
        *slow_disks,
        *volumes,
        *devstack,
        *shells,
        "ip",
        "java",
        "chromium",
        "prometheus",
        "systemd-analyze",
        "haproxy",
        "redis-sentinel",
    ):
        machine.program(name)
    assert machine.run("packages").returncode == 0
    assert not (machine.clone / ".venv").exists()
    assert machine.run().returncode == 0
    assert "pyspark" not in machine.noted()[0]
    assert machine.run("everything").returncode == 0
    assert len(machine.noted()) == 2
    assert "aio,foreign," in machine.noted()[1]
    assert machine.run("everything").stderr == ""
    assert machine.run().stderr == ""
    assert len(machine.noted()) == 2


def test_an_unknown_word_is_refused(machine):
    result = machine.run("all")
    assert result.returncode == 2
    assert "`everything`" in result.stderr
