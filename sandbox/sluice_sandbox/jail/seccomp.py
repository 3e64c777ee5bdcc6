"""The system calls that a jailed worker may make, as a classic BPF program for ``bwrap --seccomp``.

The program is written here: the only binding of libseccomp on the package index, pyseccomp, dates from 2021.

It is an allow-list: other calls fail with EPERM (``clone3`` with ENOSYS, so that the C library falls back), a foreign
architecture or the x32 ABI kills.  Intentionally missing: processes and threads, new sockets, signals to other
processes, tracing, mounts, keys, io_uring, bpf, limits.
"""

from __future__ import annotations

import errno
import platform
import struct
from typing import Final

#: Operation, number of instructions to skip when it holds and when not, operand.
_Instruction = tuple[int, int, int, int]
_LOAD, _EQUAL, _AT_LEAST, _RETURN = 0x20, 0x15, 0x35, 0x06
_KILL, _ERRNO, _ALLOW = 0x80000000, 0x00050000, 0x7FFF0000
_DENY: Final = _ERRNO | errno.EPERM
_NUMBER, _ARCH, _ARGUMENTS = 0, 4, 16
_X32: Final = 0x40000000

#: Allowed with all arguments; the most frequent first, since the program is evaluated from the top.
ALLOWED: Final = (
    "epoll_wait", "epoll_pwait", "recvfrom", "sendmsg", "accept4", "recvmsg", "sendto", "epoll_ctl", "close",
    "read", "pread64", "write", "clock_gettime", "futex", "mmap", "munmap", "brk", "mremap", "madvise",
    "mprotect", "getrandom", "openat", "open", "fstat", "newfstatat", "stat", "lstat", "statx", "lseek",
    "getdents64", "readlink", "readlinkat", "access", "faccessat", "faccessat2", "fcntl", "dup", "dup2", "dup3",
    "poll", "ppoll", "select", "pselect6", "setsockopt", "getsockopt", "getsockname", "shutdown",
    "epoll_create1", "getcwd", "getpid", "gettid", "getppid", "getuid", "geteuid", "getgid", "getegid", "uname",
    "sysinfo", "sched_yield", "sched_getaffinity", "nanosleep", "clock_nanosleep", "clock_getres",
    "gettimeofday", "time", "rt_sigaction", "rt_sigprocmask", "rt_sigreturn", "sigaltstack", "restart_syscall",
    "set_tid_address", "set_robust_list", "rseq", "arch_prctl", "getrusage", "times", "exit", "exit_group",
    "execve",
)  # fmt: skip
#: Allowed when their second argument is one of these: asking for sizes and flags of descriptors.
_IOCTLS: Final = (0x5401, 0x5421, 0x5450, 0x5451)

_X86_64: Final = {
    "read": 0, "write": 1, "open": 2, "close": 3, "stat": 4, "fstat": 5, "lstat": 6, "poll": 7, "lseek": 8,
    "mmap": 9, "mprotect": 10, "munmap": 11, "brk": 12, "rt_sigaction": 13, "rt_sigprocmask": 14,
    "rt_sigreturn": 15, "ioctl": 16, "pread64": 17, "access": 21, "select": 23, "sched_yield": 24, "mremap": 25,
    "madvise": 28, "dup": 32, "dup2": 33, "nanosleep": 35, "getpid": 39, "sendto": 44, "recvfrom": 45,
    "sendmsg": 46, "recvmsg": 47, "shutdown": 48, "getsockname": 51, "setsockopt": 54, "getsockopt": 55,
    "execve": 59, "exit": 60, "uname": 63, "fcntl": 72, "getcwd": 79, "readlink": 89, "gettimeofday": 96,
    "getrusage": 98, "sysinfo": 99, "times": 100, "getuid": 102, "getgid": 104, "geteuid": 107, "getegid": 108,
    "getppid": 110, "sigaltstack": 131, "arch_prctl": 158, "gettid": 186, "time": 201, "futex": 202,
    "sched_getaffinity": 204, "getdents64": 217, "set_tid_address": 218, "restart_syscall": 219,
    "clock_gettime": 228, "clock_getres": 229, "clock_nanosleep": 230, "exit_group": 231, "epoll_wait": 232,
    "epoll_ctl": 233, "openat": 257, "newfstatat": 262, "readlinkat": 267, "faccessat": 269, "pselect6": 270,
    "ppoll": 271, "set_robust_list": 273, "epoll_pwait": 281, "accept4": 288, "epoll_create1": 291, "dup3": 292,
    "prlimit64": 302, "getrandom": 318, "statx": 332, "rseq": 334, "clone3": 435, "faccessat2": 439,
}  # fmt: skip
#: The generic table, which newer architectures share; missing calls do not exist there.
_GENERIC: Final = {
    "getcwd": 17, "epoll_create1": 20, "epoll_ctl": 21, "epoll_pwait": 22, "dup": 23, "dup3": 24, "fcntl": 25,
    "ioctl": 29, "faccessat": 48, "openat": 56, "close": 57, "getdents64": 61, "lseek": 62, "read": 63,
    "write": 64, "pread64": 67, "pselect6": 72, "ppoll": 73, "readlinkat": 78, "newfstatat": 79, "fstat": 80,
    "exit": 93, "exit_group": 94, "set_tid_address": 96, "futex": 98, "set_robust_list": 99, "nanosleep": 101,
    "clock_gettime": 113, "clock_getres": 114, "clock_nanosleep": 115, "sched_getaffinity": 123,
    "sched_yield": 124, "restart_syscall": 128, "sigaltstack": 132, "rt_sigaction": 134, "rt_sigprocmask": 135,
    "rt_sigreturn": 139, "times": 153, "uname": 160, "getrusage": 165, "gettimeofday": 169, "getpid": 172,
    "getppid": 173, "getuid": 174, "geteuid": 175, "getgid": 176, "getegid": 177, "gettid": 178, "sysinfo": 179,
    "getsockname": 204, "sendto": 206, "recvfrom": 207, "setsockopt": 208, "getsockopt": 209, "shutdown": 210,
    "sendmsg": 211, "recvmsg": 212, "brk": 214, "munmap": 215, "mremap": 216, "execve": 221, "mmap": 222,
    "mprotect": 226, "madvise": 233, "accept4": 242, "prlimit64": 261, "getrandom": 278, "statx": 291,
    "rseq": 293, "clone3": 435, "faccessat2": 439,
}  # fmt: skip
#: By machine: the audit number of the architecture, and its calls.
MACHINES: Final = {"x86_64": (0xC000003E, _X86_64), "aarch64": (0xC00000B7, _GENERIC)}


def program(machine: str = "") -> bytes | None:
    """Return the filter for ``machine`` (this one by default), or None if its calls are not known."""
    known = MACHINES.get(machine or platform.machine())
    if known is None:
        return None
    arch, numbers = known
    code = [
        _load(_ARCH),
        (_EQUAL, 1, 0, arch),
        _answer(_KILL),
        _load(_NUMBER),
        (_AT_LEAST, 0, 1, _X32),
        _answer(_KILL),
    ]
    for name in ALLOWED:
        if name in numbers:
            code += _when(numbers[name], _ALLOW)
    code += _when(numbers["clone3"], _ERRNO | errno.ENOSYS)
    code += _second_argument(numbers["ioctl"], _IOCTLS)
    code += _no_third_argument(numbers["prlimit64"])
    code.append(_answer(_DENY))
    return b"".join(struct.pack("=HBBI", *instruction) for instruction in code)


def _load(offset: int) -> _Instruction:
    return _LOAD, 0, 0, offset


def _answer(verdict: int) -> _Instruction:
    return _RETURN, 0, 0, verdict


def _when(value: int, verdict: int) -> list[_Instruction]:
    """Return ``verdict`` when the loaded value is ``value``, else continue."""
    return [(_EQUAL, 0, 1, value), _answer(verdict)]


def _second_argument(number: int, values: tuple[int, ...]) -> list[_Instruction]:
    """Allow the call ``number`` with one of ``values``."""
    allowed = [instruction for value in values for instruction in _when(value, _ALLOW)]
    return [(_EQUAL, 0, len(allowed) + 2, number), _load(_ARGUMENTS + 8), *allowed, _answer(_DENY)]


def _no_third_argument(number: int) -> list[_Instruction]:
    """Allow the call ``number`` when its third argument is a null pointer: limits are read, never set."""
    return [
        (_EQUAL, 0, 6, number),
        _load(_ARGUMENTS + 16),
        (_EQUAL, 0, 3, 0),
        _load(_ARGUMENTS + 20),
        (_EQUAL, 0, 1, 0),
        _answer(_ALLOW),
        _answer(_DENY),
    ]
