"""The machine of a result."""

from __future__ import annotations

import os
import platform
import subprocess
import time
from importlib import metadata
from pathlib import Path
from typing import Any, Final

_PACKAGES: Final = ("swift", "eventlet", "redis", "lmdb", "zstandard", "pika", "Django", "gunicorn")
_PROGRAMS: Final = (("redis-server", "--version"), ("memcached", "--version"))


def machine_facts(folder: Path) -> dict[str, Any]:
    """Cores, load and versions; ``folder`` is the place of the disks of the measured clusters."""
    return {
        "at": time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime()),
        "cores": len(os.sched_getaffinity(0)),
        "processor": _processor(),
        "memory_gib": round(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2**30, 1),
        "load_before": round(os.getloadavg()[0], 2),
        "kernel": platform.release(),
        "file_system": file_system(folder),
        "python": platform.python_version(),
        **{name: _version(name) for name in _PACKAGES},
        **{program[0]: _asked(program) for program in _PROGRAMS},
    }


def _processor() -> str:
    lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "unknown")


def file_system(folder: Path) -> str:
    """The type of the innermost mount that holds ``folder``."""
    here = str(folder.resolve())
    best, found = "", "unknown"
    for line in Path("/proc/self/mounts").read_text(encoding="utf-8").splitlines():
        _, point, kind, *_ = line.split()
        inside = here == point or here.startswith(point.rstrip("/") + "/")
        if inside and len(point) >= len(best):
            best, found = point, kind
    return found


def _version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "missing"


def _asked(program: tuple[str, ...]) -> str:
    try:
        answer = subprocess.run(program, capture_output=True, text=True, check=True, timeout=10).stdout
    except (OSError, subprocess.SubprocessError):
        return "missing"
    return answer.splitlines()[0].strip()
