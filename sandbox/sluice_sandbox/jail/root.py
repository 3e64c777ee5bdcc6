"""The root file system of the jail: a Python, the offered packages, the worker, and no other files.

It is copied once per version of its content, into a folder of its own, so a jail has no file of the host, and an
upgrade of the host's Python does not change files of a running worker.  The interpreter is that of the caller; its
shared libraries are those that the dynamic linker names.
"""

from __future__ import annotations

import compileall
import hashlib
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterable, Iterator, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Final

from sluice_core.errors import SluiceError
from sluice_sandbox.files import create_folder

#: Packages that an uploaded Python filter may import besides the standard library, with their modules.
PACKAGES: Final = {
    "cryptography": ("cryptography", "_cffi_backend"),
    "zstandard": ("zstandard",),
    "lz4": ("lz4",),
}
#: Sluice's files in the jail, below the package.
_OURS: Final = (
    "__init__.py",
    "process/__init__.py",
    "process/wire.py",
    "process/worker.py",
    "process/worker_steps.py",
)
_PACKAGE: Final = Path(__file__).parents[1]
#: Parts of the standard library that no filter needs or that cannot work in a jail.
_LEFT_OUT: Final = (
    "test", "tests", "idlelib", "tkinter", "turtledemo", "ensurepip", "lib2to3", "site-packages", "dist-packages",
    "config-*", "pydoc_data", "venv", "_tkinter*", "_test*", "_xxtest*", "_ctypes_test*",
)  # fmt: skip
_FOUND: Final = re.compile(r"=> (/\S+) \(0x")
_LINKER_IN_ELF: Final = re.compile(rb"/lib[\w./-]*/ld-[\w.-]+|/lib/ld-[\w.-]+")


class JailUnavailable(SluiceError):
    """This machine cannot run a jail; the message says what is missing."""


def build(folder: Path, packages: Sequence[str] = tuple(PACKAGES)) -> Path:
    """Return the jail's root under ``folder``; build it if it is missing.

    :raises JailUnavailable: when a part of it cannot be found
    """
    root = folder / f"root-{_stamp(packages)}"
    if not root.is_dir():
        with create_folder(root) as made:
            _fill(made, packages)
    return root


def _stamp(packages: Sequence[str]) -> str:
    """Changes with the content of a root."""
    digest = hashlib.sha256(repr((sys.version, sys.base_prefix, _LEFT_OUT)).encode())
    for name in packages:
        try:
            digest.update(f"{name} {version(name)}\n".encode())
        except PackageNotFoundError as error:
            raise JailUnavailable(f"package `{name}`, which the jail offers, is not installed") from error
    for path in (Path(__file__), *(_PACKAGE / name for name in _OURS)):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def _fill(root: Path, packages: Sequence[str]) -> None:
    for name in ("python/bin", "lib", "packages", "sluice/sluice_sandbox/process", "dev"):
        (root / name).mkdir(parents=True)
    binary = root / "python/bin/python3"
    shutil.copy2(os.path.realpath(sys.executable), binary)
    stdlib = Path(sysconfig.get_path("stdlib"))
    copied = root / "python/lib" / stdlib.name
    shutil.copytree(stdlib, copied, ignore=shutil.ignore_patterns(*_LEFT_OUT))
    for name in packages:
        for module in PACKAGES[name]:
            _copy_module(module, root / "packages")
    for name in _OURS:
        shutil.copy2(_PACKAGE / name, root / "sluice/sluice_sandbox" / name)
    for name in ("null", "urandom"):
        (root / "dev" / name).touch()
    _copy_libraries(root, [binary, *copied.rglob("*.so"), *(root / "packages").rglob("*.so")])
    compileall.compile_dir(root, quiet=2, maxlevels=20)
    for path in (root, *root.rglob("*")):
        if not path.is_symlink():
            path.chmod(0o755 if path.is_dir() or path == binary or ".so" in path.name else 0o644)


def _copy_module(name: str, target: Path) -> None:
    """Copy a package or a single extension module, as it is installed."""
    spec = importlib.util.find_spec(name)
    if spec is None:
        raise JailUnavailable(f"module `{name}`, which the jail offers, is not installed")
    if spec.submodule_search_locations:
        source = Path(next(iter(spec.submodule_search_locations)))
        shutil.copytree(source, target / source.name)
    elif spec.origin:
        shutil.copy2(spec.origin, target)


def _copy_libraries(root: Path, files: Sequence[Path]) -> None:
    """Copy the libraries that the dynamic linker needs for ``files`` into ``/lib``; the linker to its own path."""
    linker = _linker(files[0])
    targets = {root / "lib" / library.name: library for library in _libraries(files)}
    targets.setdefault(root / str(linker).lstrip("/"), linker)
    for target, source in targets.items():
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(source.resolve(), target)


def _libraries(files: Iterable[Path]) -> Iterator[Path]:
    found = subprocess.run(["ldd", *map(str, files)], capture_output=True, text=True, check=False)
    for match in _FOUND.finditer(found.stdout):
        yield Path(match[1])


def _linker(binary: Path) -> Path:
    """The linker that ``binary`` names."""
    match = _LINKER_IN_ELF.search(binary.read_bytes()[:4096])
    if match is None:
        raise JailUnavailable(f"`{binary}` names no dynamic linker")
    return Path(match[0].decode())
