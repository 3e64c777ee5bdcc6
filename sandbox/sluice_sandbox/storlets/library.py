"""The library that is mounted into every container at ``/usr/local/lib/storlets``: Storlets' agent, and Sluice's.

``python/storlets`` is the installed package without the parts for hosts, ``python/sluice_sandbox`` the few modules of
Sluice that run in a container; ``java`` exists if it was built (``java``).  The folder is made once per content and
never changed: its name is the digest of its content.
"""

from __future__ import annotations

import compileall
import hashlib
import importlib.util
import os
import py_compile
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from sluice_core.errors import PeerError
from sluice_sandbox.files import create_folder

#: The parts of Storlets in it: the agent and the wire, nothing of the gateway or of Swift.
_STORLETS: Final = ("__init__.py", "agent", "sbus")
_OURS: Final = (
    "__init__.py",
    "storlets/__init__.py",
    "storlets/wire.py",
    "storlets/agent.py",
    "storlets/daemon.py",
    "storlets/factory.py",
)


def prepare(cache: Path, java: Path | None = None) -> Path:
    """Return the library's folder below ``cache``; make it if it is missing; ``java`` is a folder of jars to add.

    :raises PeerError: when Storlets is not installed
    """
    files = dict(_files(java))
    digest = hashlib.sha256()
    for name, source in sorted(files.items()):
        digest.update(f"{name}\0{hashlib.sha256(source.read_bytes()).hexdigest()}\n".encode())
    folder = cache / f"library-{digest.hexdigest()[:16]}"
    if folder.is_dir():
        return folder
    with create_folder(folder) as new:
        for name, source in files.items():
            target = new / name
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, target)
        # used if the container's Python has the version of this one; it cannot write any there
        compileall.compile_dir(new, quiet=2, invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH)
        for root, _, _ in os.walk(new):
            os.chmod(root, 0o755)  # noqa: S103  # read by whoever runs filters
    return folder


def _files(java: Path | None) -> Iterator[tuple[str, Path]]:
    """Yield name in the library → file on this machine."""
    spec = importlib.util.find_spec("storlets")
    if spec is None or spec.origin is None:
        raise PeerError("Storlets is not installed, expected the extra `sandbox`")
    storlets, ours = Path(spec.origin).parent, Path(__file__).parents[1]
    for name in _STORLETS:
        for path in [storlets / name] if name.endswith(".py") else sorted((storlets / name).rglob("*.py")):
            yield f"python/storlets/{path.relative_to(storlets)}", path
    for name in _OURS:
        yield f"python/sluice_sandbox/{name}", ours / name
    for path in sorted(java.iterdir()) if java is not None else ():
        yield f"java/{path.name}", path
