"""The functional suite and the sample configurations from Swift's source distribution, of the installed version."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Final

from sluice_aio.errors import LaunchError
from sluice_sandbox.storlets.java import unpack

#: The distribution also has ``swift/``, which would be tested instead of the installed one.
_ONLY: Final = ("test/", "etc/")
_DIGEST: Final = "SHA256"


@dataclass(frozen=True, slots=True)
class Source:
    """``root`` holds ``test/`` and ``etc/``, nothing else of Swift; ``sha256`` is that of the distribution."""

    root: Path
    version: str
    sha256: str


def fetch(cache: Path) -> Source:
    """The suite in the folder ``cache``, downloaded when it is missing.

    :raises LaunchError: when pip cannot download it
    """
    wanted = version("swift")
    root = cache / f"swift-source-{wanted}"
    if not root.exists():
        cache.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=cache) as work:
            archive = _download(wanted, Path(work))
            fresh = Path(work) / "tree"
            _unpack(archive, f"swift-{wanted}/", fresh)
            (fresh / _DIGEST).write_text(hashlib.sha256(archive.read_bytes()).hexdigest(), encoding="ascii")
            fresh.rename(root)
    return Source(root, wanted, (root / _DIGEST).read_text(encoding="ascii"))


def _download(wanted: str, folder: Path) -> Path:
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "download", "--quiet", "--no-deps"]
    command = [*pip, "--no-binary", "swift", "--dest", str(folder), f"swift=={wanted}"]
    ended = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    found = list(folder.glob("swift-*.tar.gz"))
    if ended.returncode != 0 or len(found) != 1:
        raise LaunchError(f"pip cannot download the source of swift {wanted}: {ended.stderr[-1000:]}")
    return found[0]


def _unpack(archive: Path, top: str, into: Path) -> None:
    unpack(archive, into, lambda name: name.removeprefix(top).startswith(_ONLY))
    for folder in (into / top).iterdir():
        shutil.move(folder, into / folder.name)
    (into / top).rmdir()
