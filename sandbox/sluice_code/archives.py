"""Unpacks third-party tar archives (source distributions)."""

from __future__ import annotations

import gzip
import shutil
import tarfile
import zlib
from collections.abc import Callable
from pathlib import Path

from sluice_core.errors import PeerError


def unpack(archive: Path, into: Path, wanted: Callable[[str], bool] = lambda name: True) -> None:
    """Write the regular files of a tar archive below ``into``, of those whose name is ``wanted``; links are left out.

    As :data:`tarfile.data_filter`, which Python before 3.11.4 does not have, nothing is written elsewhere.

    :raises PeerError: when it is no whole tar archive, or a name leads out of ``into``; nothing more is written then
    """
    try:
        with tarfile.open(archive) as tar:
            for member in tar:
                if member.isfile() and wanted(member.name):
                    _write(tar, member, into.resolve())
    except (tarfile.TarError, gzip.BadGzipFile, zlib.error, EOFError) as error:
        raise PeerError(f"`{archive.name}` is no archive that can be unpacked: {error}") from error


def _write(tar: tarfile.TarFile, member: tarfile.TarInfo, root: Path) -> None:
    target = (root / member.name).resolve()
    if not target.is_relative_to(root):
        raise PeerError(f"`{member.name}` in an archive leads out of the folder that it is unpacked to")
    target.parent.mkdir(parents=True, exist_ok=True)
    content = tar.extractfile(member)
    assert content is not None  # it is a file
    with content, open(target, "wb") as out:
        shutil.copyfileobj(content, out)
