"""Checks the isolated environment of this machine with a storlet that returns its input."""

from __future__ import annotations

import hashlib
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from time import perf_counter
from typing import Final

from sluice_code.code_store import CodeStore
from sluice_core.describe import STORLET
from sluice_core.errors import PeerError
from sluice_core.messages.uploads import Upload
from sluice_filters.api import Hint
from sluice_sandbox.api import load_filter
from sluice_sandbox.storlets import library as storlets_library
from sluice_sandbox.storlets.container import ContainerSettings
from sluice_sandbox.storlets.team import StorletTeam

ACCOUNT: Final = "AUTH_sluice-sandbox-check"
_CODE: Final = b"""
class Same:
    def __init__(self, logger):
        pass

    def __call__(self, in_files, out_files, params):
        while data := in_files[0].read(65536):
            out_files[0].write(data)
"""


def check(engine: str, image: str, state: Path) -> Iterator[str]:
    """Yield one line per check.

    :raises SluiceError: for the first check that fails
    """
    state.mkdir(parents=True, exist_ok=True, mode=0o711)
    folder = Path(tempfile.mkdtemp(prefix="check-", dir=state))
    folder.chmod(0o711)
    store, sha256 = CodeStore(folder / "code"), hashlib.sha256(_CODE).hexdigest()
    store.add(_CODE, sha256)
    library = storlets_library.prepare(folder / "library")
    team = StorletTeam(ContainerSettings(engine, image, folder / "sandbox", library, node=folder.name), store)
    upload = Upload("same", STORLET, "python", "same.Same", sha256, len(_CODE), reverse=True)
    try:
        same = load_filter(upload, store, team)()
        for what, size in (("cold, 10 KB", 10_000), ("warm, 10 KB", 10_000), ("warm, 1 MB", 1_000_000)):
            data, begun = bytes(size), perf_counter()
            stream = team.encoder([same], Hint(size=size, account=ACCOUNT))
            if stream.feed(data) + stream.finish() != data:
                raise PeerError("other bytes came out than went in")
            yield f"{what}: {1000 * (perf_counter() - begun):.1f} ms"
    finally:
        team.container(ACCOUNT).replace()
        shutil.rmtree(folder, ignore_errors=True)
