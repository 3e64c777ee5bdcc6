"""The folder of wheels that the guide installs from: third parties', kept between runs, and Sluice of this clone."""

from __future__ import annotations

import configparser
import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

from tests.support.committed_files import copy_committed_files

from sluice_sandbox.files import cache_folder

CLONE: Final = Path(__file__).resolve().parents[3]
#: What the guide's hosts install of Sluice, and beside it what their Swift has anyway.
_ROLES: Final = "controller,actors,openstack,swift,agent,block,horizon,sandbox,motifs-fs"
_BESIDE: Final = ("keystonemiddleware", "python-memcached", "setuptools")
#: Lists of versions whose wheels are kept, those that were used last: each takes 150 MB.
_KEPT: Final = 3


def link_third_parties(folder: Path) -> None:
    """Make ``folder`` one with wheels of all dependencies of Sluice's roles, in the tested versions.

    They are built once for each list of versions.  The files are links, or copies where it is on another file system.
    """
    cache = cache_folder()
    cache.mkdir(parents=True, exist_ok=True)
    with open(cache / "wheelhouse.lock", "w", encoding="ascii") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        kept = _third_parties(cache)
        try:
            shutil.copytree(kept, folder, copy_function=os.link)
        except (OSError, shutil.Error):
            shutil.copytree(kept, folder, copy_function=shutil.copy, dirs_exist_ok=True)
        by_use = sorted(cache.glob("wheelhouse-*/"), key=lambda one: one.stat().st_mtime)
        for old in by_use[:-_KEPT]:
            shutil.rmtree(old)


def _third_parties(cache: Path) -> Path:
    """The folder in the cache with these wheels."""
    constraints = CLONE / "constraints.txt"
    wanted = " ".join((sys.version, _ROLES, *_BESIDE))
    seen = constraints.read_bytes() + (CLONE / "setup.cfg").read_bytes() + wanted.encode()
    folder = cache / f"wheelhouse-{hashlib.sha256(seen).hexdigest()[:12]}"
    if not folder.exists():
        fresh = folder.with_name(folder.name + ".new")
        shutil.rmtree(fresh, ignore_errors=True)
        _pip("wheel", "--wheel-dir", str(fresh), "-c", str(constraints), f"{CLONE}[{_ROLES}]", *_BESIDE)
        for ours in fresh.glob("openstack_sluice-*.whl"):
            ours.unlink()
        fresh.rename(folder)
    os.utime(folder)
    return folder


def later_version() -> str:
    """A version that pip considers newer than that of this clone."""
    setup = configparser.ConfigParser(interpolation=None)
    setup.read(CLONE / "setup.cfg")
    return f"{setup['metadata']['version']}.post1"


def add_sluice(folder: Path, version: str = "") -> Path:
    """Build the wheel of this clone in ``folder``, as another ``version`` if given."""
    with tempfile.TemporaryDirectory() as scratch:
        copy = Path(scratch) / "sluice"
        copy_committed_files(copy, without=("tests/", "benchmarks/"))
        if version:
            setup = copy / "setup.cfg"
            lines = setup.read_text(encoding="utf-8").splitlines()
            changed = [f"version = {version}" if line.startswith("version = ") else line for line in lines]
            setup.write_text("\n".join(changed) + "\n", encoding="utf-8")
        _pip("wheel", "--no-deps", "--wheel-dir", str(folder), str(copy))
    (found,) = folder.glob(f"openstack_sluice-{version or '*'}-*.whl")
    return found


def _pip(*words: str) -> None:
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet", *words]
    subprocess.run(command, check=True, stdin=subprocess.DEVNULL)
