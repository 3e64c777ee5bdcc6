"""The parts of a jail: system calls, control groups, the root, and the environment inside."""

from __future__ import annotations

import errno
import os
import struct

import pytest
from tests.support.sandbox.process import CACHE

from sluice_sandbox.jail import root as jail_root
from sluice_sandbox.jail import seccomp
from sluice_sandbox.jail.jail import ControlGroups, Jail, bubblewrap
from sluice_sandbox.jail.root import JailUnavailable
from sluice_sandbox.limits import Limits

X86_64, ARM = 0xC000003E, 0xC00000B7
ALLOW, KILL = 0x7FFF0000, 0x80000000
DENY, NONE = 0x00050000 | errno.EPERM, 0x00050000 | errno.ENOSYS


def verdict(machine, number, arch=X86_64, args=(0, 0, 0, 0, 0, 0)):
    """The kernel's verdict: a classic BPF machine of the four operations that are used."""
    program = seccomp.program(machine)
    data = struct.pack("=IIQ6Q", number, arch, 0, *args)
    place = value = 0
    while True:
        operation, if_true, if_false, operand = struct.unpack_from("=HBBI", program, place * 8)
        place += 1
        if operation == 0x06:
            return operand
        if operation == 0x20:
            (value,) = struct.unpack_from("=I", data, operand)
        else:
            holds = value == operand if operation == 0x15 else value >= operand
            place += if_true if holds else if_false


CALLS = [
    ("x86_64", 0, X86_64, (), ALLOW),  # read
    ("x86_64", 232, X86_64, (), ALLOW),  # epoll_wait
    ("x86_64", 41, X86_64, (), DENY),  # socket
    ("x86_64", 42, X86_64, (), DENY),  # connect
    ("x86_64", 56, X86_64, (), DENY),  # clone
    ("x86_64", 57, X86_64, (), DENY),  # fork
    ("x86_64", 435, X86_64, (), NONE),  # clone3
    ("x86_64", 62, X86_64, (), DENY),  # kill
    ("x86_64", 101, X86_64, (), DENY),  # ptrace
    ("x86_64", 165, X86_64, (), DENY),  # mount
    ("x86_64", 425, X86_64, (), DENY),  # io_uring_setup
    ("x86_64", 0x40000000, X86_64, (), KILL),  # x32
    ("x86_64", 0, 0x40000003, (), KILL),  # i386
    ("x86_64", 16, X86_64, (3, 0x5421), ALLOW),  # ioctl FIONBIO
    ("x86_64", 16, X86_64, (0, 0x5412), DENY),  # ioctl TIOCSTI
    ("x86_64", 302, X86_64, (0, 9, 0, 1), ALLOW),  # prlimit64 that reads
    ("x86_64", 302, X86_64, (0, 9, 1, 0), DENY),  # prlimit64 that sets
    ("x86_64", 302, X86_64, (0, 9, 1 << 32, 0), DENY),
    ("aarch64", 63, ARM, (), ALLOW),  # read
    ("aarch64", 198, ARM, (), DENY),  # socket
    ("aarch64", 220, ARM, (), DENY),  # clone
    ("aarch64", 29, ARM, (3, 0x5421), ALLOW),
]


@pytest.mark.parametrize(("machine", "number", "arch", "args", "wanted"), CALLS)
def test_only_what_is_on_the_list_is_allowed(machine, number, arch, args, wanted):
    assert verdict(machine, number, arch, (*args, *(0,) * (6 - len(args)))) == wanted


def test_an_unknown_machine_has_no_filter():
    assert seccomp.program("vax") is None


def test_groups_of_version_1_are_made_below_our_own(tmp_path):
    own = tmp_path / "cgroup"
    own.write_text("3:cpu,cpuacct:/svc\n2:memory:/svc\n1:pids:/elsewhere\n0::/\n")
    for name, path in (("cpu", "svc"), ("memory", "svc")):
        (tmp_path / name / path).mkdir(parents=True)
        (tmp_path / name / path / "cgroup.procs").touch()
    groups = ControlGroups(tmp_path, own)
    groups.open()
    assert groups.available == ("cpu", "memory")
    made = tmp_path / "memory/svc" / f"sluice-{os.getpid()}-7"
    made.mkdir()
    (made / "memory.limit_in_bytes").touch()
    groups.group("7", Limits(memory=1000, workers=3))
    assert (made / "memory.limit_in_bytes").read_text() == "3000"


def test_in_version_2_the_supervisor_steps_aside_and_passes_controllers_on(tmp_path):
    own = tmp_path / "cgroup"
    own.write_text("0::/svc\n")
    base = tmp_path / "svc"
    base.mkdir()
    (tmp_path / "cgroup.controllers").write_text("cpu memory pids io\n")
    (base / "cgroup.controllers").write_text("memory pids io\n")
    groups = ControlGroups(tmp_path, own)
    groups.open()
    assert groups.available == ("memory", "pids")
    assert (base / "cgroup.subtree_control").read_text() == "+memory +pids"
    assert (base / "supervisor" / "cgroup.procs").read_text() == str(os.getpid())
    made = base / f"sluice-{os.getpid()}-1"
    made.mkdir()
    for name in ("memory.max", "pids.max", "memory.swap.max"):
        (made / name).touch()
    groups.group("1", Limits(memory=500, workers=2, processes=4))
    assert [(made / name).read_text() for name in ("memory.max", "pids.max")] == ["1000", "12"]


def test_missing_control_groups_are_logged_and_tolerated(tmp_path, caplog):
    groups = ControlGroups(tmp_path, tmp_path / "cgroup")
    groups.open()
    assert groups.available == ()
    assert "no control group for memory, pids, cpu: isolated filters are held by other limits" in caplog.text


def test_without_bubblewrap_the_package_is_named(monkeypatch):
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(JailUnavailable, match="Debian package `bubblewrap`"):
        bubblewrap()


def test_a_package_that_is_not_installed_keeps_the_root_from_being_built(tmp_path, monkeypatch):
    monkeypatch.setitem(jail_root.PACKAGES, "no_such_package", ("no_such_package",))
    with pytest.raises(JailUnavailable, match="package `no_such_package`, which the jail offers, is not installed"):
        jail_root.build(tmp_path, ("no_such_package",))


LOOK = r"""
import os, sys
print(os.getpid(), os.getuid(), sorted(os.listdir('/')))
for path in ('/proc/1/environ', '/etc/passwd', '/root', '/home', '/sys', '/tmp'):
    print(os.path.exists(path), end=' ')
try: open('/new', 'w')
except OSError as error: print(error.errno)
"""


def test_inside_there_is_an_interpreter_and_nothing_else():
    root = jail_root.build(CACHE)
    assert jail_root.build(CACHE) == root
    heard, said = os.pipe()
    command = ["/python/bin/python3", "-I", "-S", "-c", f"import os; os.dup2({said}, 1)\n{LOOK}"]
    process = Jail(root, Limits(), uid=400000 if os.getuid() == 0 else None).start(command, [said], 2)
    os.close(said)
    with open(heard) as answer:
        first, second = answer.read().splitlines()
    assert process.wait() == 0
    assert first.startswith("1 65534 ['dev', 'lib'")
    assert "python', 'sluice']" in first
    assert second == f"False False False False False False {errno.EROFS}"
