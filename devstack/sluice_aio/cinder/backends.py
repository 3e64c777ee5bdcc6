"""The parts of Cinder's back ends outside its process, set up before its start and removed after its end.

The NFS share is a bind mount, at the place where os-brick looks for the mounted share.  The exports of attached volumes
are processes that outlive Cinder, as in production.  Both are discovered, not recorded, so a crash leaks
nothing.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Final

from sluice_aio.base.layout import Layout
from sluice_aio.base.ports import HOST
from sluice_aio.errors import LaunchError
from sluice_block.cinder_nbd.nbdkit_process import NbdkitProcess

NFS_SHARE: Final = f"{HOST}:/volumes"
#: Program → the Debian package that brings it.
_PROGRAMS: Final = {"nbdkit": "nbdkit", "qemu-img": "qemu-utils"}
_MOUNTS: Final = Path("/proc/self/mounts")
#: Debian's bindings of Ceph, which exist only for its own Python, and their packages.
_BINDINGS: Final = Path("/usr/lib/python3/dist-packages")
_CEPH_MODULES: Final = {"rados": "python3-rados", "rbd": "python3-rbd"}


def folder(layout: Layout) -> Path:
    """Cinder's configuration, database and volumes."""
    return layout.data / "cinder"


def export_folder(layout: Layout) -> Path:
    """Sockets and records of attached volumes."""
    return layout.run / "nbd"


def nfs_mounts(layout: Layout) -> Path:
    """The parent folder of mounted shares."""
    return folder(layout) / "nfs-mounts"


def check_programs() -> None:
    """Check that the programs of the drivers are installed.

    :raises LaunchError: names the missing package
    """
    for program, package in _PROGRAMS.items():
        if shutil.which(program) is None:
            raise LaunchError(f"`{program}` is not installed, run `tools/bootstrap everything` or install {package}")


def link_ceph_modules(layout: Layout) -> None:
    """Make the bindings of Ceph, and no other package of Debian, importable for Cinder's Python.

    :raises LaunchError: names the missing package
    """
    links = folder(layout) / "ceph-modules"
    links.mkdir(parents=True, exist_ok=True)
    for module, package in _CEPH_MODULES.items():
        libraries = sorted(_BINDINGS.glob(f"{module}.cpython-*.so"))
        if not libraries:
            raise LaunchError(f"Cinder needs the module `{module}` for Ceph, install {package}")
        for one in libraries:
            (links / one.name).unlink(missing_ok=True)
            (links / one.name).symlink_to(one)


def prepare(layout: Layout) -> None:
    """Mount the NFS share, as root.

    :raises LaunchError: if it cannot be mounted
    """
    if os.geteuid() != 0:
        return
    # the name that os-brick derives from the share
    target = nfs_mounts(layout) / hashlib.md5(NFS_SHARE.encode(), usedforsecurity=False).hexdigest()
    if target in _mounted(nfs_mounts(layout)):
        return
    target.mkdir(parents=True, exist_ok=True)
    _mount_command(["mount", "--bind", str(folder(layout) / "nfs"), str(target)])


def release(layout: Layout) -> None:
    """End the exports of attached volumes, whose records stay for the next start, and unmount the share.

    :raises LaunchError: if it cannot be unmounted
    """
    for pid_file in sorted(export_folder(layout).glob("*.pid")):
        NbdkitProcess(pid_file).end()
    for target in _mounted(nfs_mounts(layout)):
        # a process with an open file keeps it, and no other can use it
        _mount_command(["umount", "--lazy", str(target)])


def _mounted(base: Path) -> list[Path]:
    """The mounts below ``base``, the last first."""
    fields = [line.split() for line in _MOUNTS.read_text(encoding="utf-8", errors="surrogateescape").splitlines()]
    targets = [Path(re.sub(r"\\([0-7]{3})", lambda code: chr(int(code[1], 8)), words[1])) for words in fields]
    return [target for target in reversed(targets) if target.is_relative_to(base)]


def _mount_command(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise LaunchError(f"`{' '.join(command)}`: {done.stderr.strip()}")
