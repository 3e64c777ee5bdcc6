"""Separate virtual environments of Keystone, Barbican, Cinder and Horizon: their dependencies differ from Sluice's.

Each is made with pip at the first use, from the versions in ``devstack/<service>-constraints.txt``, and kept in the
user's cache folder under a name that changes with that file.  It gets its name when it is complete, so
an interrupted installation leaves no incomplete environment; two processes that need it at once create it once.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

from sluice_aio.errors import LaunchError
from sluice_sandbox.files import cache_folder

CONSTRAINTS: Final = Path(__file__).resolve().parents[2] / "keystone-constraints.txt"
#: Packages besides the service's own: for Horizon, those that serve it and its static files.
_MORE: Final = {"horizon": ("gunicorn", "whitenoise")}
#: The line that pip prints for each package; its other output is kept for errors.
_TOLD: Final = ("Collecting ", "Installing collected")


def python(
    say: Callable[[str], None] = lambda line: None, cache: Path | None = None, service: str = "keystone"
) -> Path:
    """The Python of an environment with ``service``, which is created if it is missing.

    :param say: called with a line for each installed package
    :raises LaunchError: if it cannot be created
    """
    constraints = CONSTRAINTS.with_name(f"{service}-constraints.txt")
    try:
        pinned = constraints.read_bytes()
    except OSError as error:
        raise LaunchError(f"`{constraints}` cannot be read: {service} is started out of a clone") from error
    folder = cache_folder() if cache is None else cache
    root = folder / f"{service}-{hashlib.sha256(pinned).hexdigest()[:12]}-py{sys.version_info[0]}{sys.version_info[1]}"
    with _alone(folder, service):
        if not root.exists():
            say(f"installing {service} into an environment of its own, once")
            _make(root, constraints, service, say)
    return root / "bin" / "python"


def _make(root: Path, constraints: Path, service: str, say: Callable[[str], None]) -> None:
    fresh = root.with_name(root.name + ".new")
    shutil.rmtree(fresh, ignore_errors=True)
    try:
        _run([sys.executable, "-m", "venv", str(fresh)], say)
        pip = [str(fresh / "bin" / "python"), "-m", "pip", "install", "--disable-pip-version-check", "--no-input"]
        _run([*pip, "--constraint", str(constraints), service, *_MORE.get(service, ())], say)
        fresh.rename(root)  # only its Python is used, which finds its packages from any place
    except BaseException:
        shutil.rmtree(fresh, ignore_errors=True)
        raise


def _run(command: list[str], say: Callable[[str], None]) -> None:
    said: list[str] = []
    with subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        assert process.stdout is not None
        for line in process.stdout:
            said.append(line)
            if line.startswith(_TOLD):
                say(f"  {line.strip()[:100]}")
    if process.returncode != 0:
        raise LaunchError(f"`{command[-1]}` cannot be installed: {''.join(said)[-1500:]}")


@contextlib.contextmanager
def _alone(folder: Path, service: str) -> Iterator[None]:
    """One process at a time; the lock ends with its process."""
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / f"{service}.lock", "w", encoding="ascii") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
