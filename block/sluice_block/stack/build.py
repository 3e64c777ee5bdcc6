"""Builds the filters on the machine that uses them: nbdkit accepts only filters of its own version.

The result is in ``<cache>/<hash>/``, by the sources and ``nbdkit --version``.  It is built in a temporary folder beside
that and renamed, so a folder under its final name is complete; of two processes that build at once the slower one uses
the other's folder.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Final

from sluice_core.errors import SluiceError

SOURCES: Final = Path(__file__).parent.parent / "native"
FILTERS: Final = ("fuse", "nop", "xor", "bitrev", "throttle", "pending")
#: Program → its Debian package.
PROGRAMS: Final = {"nbdkit": "nbdkit", "cc": "gcc", "make": "make"}
HEADER: Final = "nbdkit-filter.h"
_PATIENCE: Final = 120.0


class BuildError(SluiceError):
    """The filters cannot be built here; the message has the missing package, or the compiler's output."""


def library(folder: Path, name: str) -> Path:
    """Return the path of a filter in a folder from :func:`build`, for ``nbdkit --filter=``."""
    return folder / f"nbdkit-sluice-{name}-filter.so"


def nbd_plugin(folder: Path) -> Path:
    """Return the path of nbdkit's plugin for NBD servers in such a folder (``native/nbd``)."""
    return folder / "nbdkit-sluice-nbd-plugin.so"


def fuse_keeper(folder: Path) -> Path:
    """Return the program in such a folder that keeps the FUSE device of a volume (``native/fuse/keeper.c``)."""
    return folder / "sluice-fuse-keeper"


def confinement(folder: Path) -> Path:
    """Return the library in such a folder that confines the nbdkit of an uploaded filter (``native/confine.c``)."""
    return folder / "sluice-confine.so"


def build_confinement(folder: Path) -> None:
    """Build only this library; pass ``folder`` to :func:`confinement` then.

    :raises BuildError: as of :func:`build`
    """
    _need("cc", "make")
    _run("make", "-C", str(SOURCES), f"OUT={folder}", str(confinement(folder)))


def build(cache: Path, sources: Path = SOURCES) -> Path:
    """Return the folder with the filters for this machine's nbdkit; build them if they are missing.

    :param cache: absolute; created if missing
    :raises BuildError: when a program or nbdkit's header is missing, or the compiler fails
    """
    _need("nbdkit")
    final = cache / _digest(sources)
    if final.is_dir():
        return final
    _need("cc", "make")
    _need_header()
    cache.mkdir(parents=True, exist_ok=True)
    temporary = Path(tempfile.mkdtemp(prefix=".build-", dir=cache))
    try:
        _run("make", "-C", str(sources), f"OUT={temporary}")
        temporary.chmod(0o755)
        try:
            temporary.rename(final)
        except OSError:
            if not final.is_dir():  # no other process built it: a fault
                raise
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
    return final


def _digest(sources: Path) -> str:
    """Return the folder's name for these sources and this nbdkit."""
    version = _run("nbdkit", "--version")
    sha = hashlib.sha256(version.encode())
    for file in sorted(sources.rglob("*")):
        if file.suffix in (".c", ".h") or file.name == "Makefile":
            data = file.read_bytes()
            sha.update(f"{file.relative_to(sources)} {len(data)}\n".encode() + data)
    return sha.hexdigest()[:32]


def _need(*programs: str) -> None:
    for program in programs:
        if shutil.which(program) is None:
            raise BuildError(
                f"`{program}` is missing, which the filters of volumes need: "
                f"expected the Debian package {PROGRAMS[program]}"
            )


def _need_header() -> None:
    try:
        _run("cc", "-E", "-x", "c", "-", text=f"#include <{HEADER}>\n")
    except BuildError as error:
        raise BuildError(
            f"nbdkit's header `{HEADER}` does not compile: expected the Debian package nbdkit-plugin-dev; {error}"
        ) from error


def _run(*command: str, text: str = "") -> str:
    """Return the standard output of a command.

    :raises BuildError: with its standard error when it fails
    """
    environment = {"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C"}
    try:
        ended = subprocess.run(
            command, input=text, capture_output=True, text=True, check=False, timeout=_PATIENCE, env=environment
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise BuildError(f"`{command[0]}` did not run: {error}") from error
    if ended.returncode != 0:
        raise BuildError(f"`{' '.join(command)}` failed: {ended.stderr.strip()}")
    return ended.stdout
