"""For tests: a Docker engine with the image, and environments of storlets on it.

The root file system of the image is built once and kept in a cache folder (``$SLUICE_CACHE``).
"""

from __future__ import annotations

import os
import shutil
import signal
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

from tests.support.sandbox.storlets import registered

from sluice_code.code_store import CodeStore
from sluice_core.messages.uploads import Upload
from sluice_filters.api import Filter
from sluice_sandbox.api import load_filter
from sluice_sandbox.docker import image
from sluice_sandbox.docker.engine import DockerEngine
from sluice_sandbox.files import cache_folder
from sluice_sandbox.limits import Limits
from sluice_sandbox.storlets import library as storlets_library
from sluice_sandbox.storlets.container import ContainerSettings
from sluice_sandbox.storlets.team import StorletTeam


def kill(engine: DockerEngine) -> None:
    """SIGKILL; images stay, and ``start`` restarts it."""
    if engine.pid is not None:
        os.kill(engine.pid, signal.SIGKILL)
    while engine.running:
        time.sleep(0.01)


@dataclass(frozen=True)
class Bench:
    """An engine and a place on it, to create environments."""

    engine: DockerEngine
    place: ContainerSettings
    store: CodeStore

    @classmethod
    @contextmanager
    def open(cls, recipe: image.ImageRecipe = image.PYTHON, java: Path | None = None) -> Iterator[Self]:
        """An engine for the block, in a folder that is removed afterwards."""
        folder = Path(tempfile.mkdtemp(prefix="sluice-"))
        try:
            with DockerEngine(folder / "engine") as engine:
                name = image.build(recipe, cache_folder(), engine.url)
                library = storlets_library.prepare(folder / "library", java)
                folder.chmod(0o711)
                place = ContainerSettings(engine.url, name, folder / "sandbox", library)
                yield cls(engine, place, CodeStore(folder / "code"))
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def team(self, limits: Limits | None = None, **changes: Any) -> StorletTeam:
        """An environment at this place, with ``changes`` of its arguments."""
        return StorletTeam(replace(self.place, **changes), self.store, limits)

    def filters(self, team: StorletTeam, uploads: Sequence[Upload]) -> Mapping[str, type[Filter]]:
        """The filters of ``uploads``; an upload that is no filter is an error."""
        return {one.keyword: load_filter(one, self.store, team) for one in uploads}

    def upload(self, keyword: str, code: str | bytes, main: str, language: str = "python", **more: Any) -> Upload:
        """Register ``code`` as ``keyword``."""
        return registered(self.store, keyword, code, main, language=language, **more)
