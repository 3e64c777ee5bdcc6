"""The build of Sluice that a process runs: the version of the distribution, and a digest of its code.

Versions change with releases, and nodes are upgraded from one commit to the next.  So the digest is part of the
version, as a local one (PEP 440): ``openstack-sluice 0.2.0+5f0c9a3e1b``.  It is the digest of the installed code,
independently of its source: a wheel has the digests of its files in its RECORD; those of an editable installation or a
system package are computed from the files.  The same code has the same digest in all of them.  Reading it takes some
0.1 s, so it is read once, when a process starts.
"""

from __future__ import annotations

from base64 import urlsafe_b64encode
from collections.abc import Iterable, Iterator
from functools import cache
from hashlib import sha256
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path, PurePosixPath
from typing import Final

from sluice_core.process.distributions import DISTRIBUTION

#: Suffixes of code files; other files are built on the node, or do not change behaviour.
CODE: Final = frozenset({".py", ".json", ".c", ".h"})
_DIGITS: Final = 10


@cache
def software() -> str:
    """Name, version and digest of the installed distribution."""
    try:
        distribution = metadata.distribution(DISTRIBUTION)
    except metadata.PackageNotFoundError:
        return f"{DISTRIBUTION}, not installed"
    packages = (distribution.read_text("top_level.txt") or "").split()
    files = dict(_recorded(distribution, packages)) or dict(_read(packages))
    return f"{DISTRIBUTION} {distribution.version}+{code_digest(files.items())}"


def code_digest(files: Iterable[tuple[str, str]]) -> str:
    """Return the digest of the digests of all files.

    :param files: path below the packages → digest of its content
    """
    whole = sha256()
    for name, digest in sorted(files):
        whole.update(f"{name} {digest}\n".encode())
    return whole.hexdigest()[:_DIGITS]


def _recorded(distribution: metadata.Distribution, packages: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Yield the files of ``packages`` in the RECORD of an installed wheel; none of an editable installation."""
    names = frozenset(packages)
    for one in distribution.files or ():
        if one.parts[0] in names and one.suffix in CODE and one.hash is not None:
            yield str(PurePosixPath(one)), one.hash.value


def _read(packages: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Yield the files of ``packages`` where they are imported from, with digests in the form of a RECORD."""
    for package in packages:
        spec = find_spec(package)
        for place in () if spec is None else spec.submodule_search_locations or ():
            yield from read_files(Path(place), package)


def read_files(folder: Path, package: str) -> Iterator[tuple[str, str]]:
    """Yield the code files of one package: path below the packages, digest."""
    for path in folder.rglob("*"):
        if path.suffix in CODE and path.is_file():
            digest = urlsafe_b64encode(sha256(path.read_bytes()).digest()).rstrip(b"=")
            yield f"{package}/{path.relative_to(folder).as_posix()}", digest.decode()
