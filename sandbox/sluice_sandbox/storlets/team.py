"""Filters written for OpenStack Storlets, in Docker containers: the environment ``storlet``.

A tenant's filters run in that tenant's container only.  Adjacent filters of a pipeline enter it once: the bytes go from
storlet to storlet inside (``run``).  The confinement of a container is in ``container``, the code that runs in it in
``agent``.

A storlet receives as parameters those of the sentence as strings (``true`` and ``false`` for yes and no),
``sluice_direction`` (``do``, or ``undo`` for reversible filters), and Storlets' own ``storlet_execution_path``, the
folder of its files.  A read-time filter whose parameter ``optional`` is true may be left out when it fails in time
(``optional``).

When an `optional` read-time filter fails in time, the bytes pass unchanged.  In time means before its first output
byte, and while its input is still buffered.  After that the answer is cut off like that of any failed filter: an answer
is never partly filtered and partly unfiltered.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import ClassVar, Final

from sluice_code.code_store import CodeStore
from sluice_core.describe import STORLET, Scalar
from sluice_filters.api import Filter, FilterError, Hint, Stream
from sluice_sandbox.api import SandboxTeam
from sluice_sandbox.files import create_folder
from sluice_sandbox.limits import DO, Limits, Session, Step
from sluice_sandbox.storlets.container import Container, ContainerSettings
from sluice_sandbox.storlets.run import StorletRun
from sluice_sandbox.storlets.stage import StorletTask

#: The parameter by which an upload, or a sentence about it, sets this.
OPTIONAL: Final = "optional"
_AT_HAND: Final = 1024 * 1024
_log = logging.getLogger(__name__)


class OptionalReader(Stream):
    """``make()`` as long as it works; up to a megabyte of its input is kept as the fallback."""

    def __init__(self, make: Callable[[], Stream]) -> None:
        self._make = make
        self._stream: Stream | None = None
        self._taken: list[bytes] | None = []
        self._size = 0
        self._untouched = False

    def feed(self, data: bytes) -> bytes:
        if self._untouched:
            return data
        self._remember(data)
        return self._or_untouched(lambda stream: stream.feed(data))

    def finish(self) -> bytes:
        return b"" if self._untouched else self._or_untouched(lambda stream: stream.finish())

    def _remember(self, data: bytes) -> None:
        if self._taken is not None:
            self._taken.append(data)
            self._size += len(data)
            if self._size > _AT_HAND:
                self._taken = None

    def _or_untouched(self, step: Callable[[Stream], bytes]) -> bytes:
        try:
            if self._stream is None:
                self._stream = self._make()
            out = step(self._stream)
        except FilterError as error:
            if self._taken is None:
                raise
            _log.warning("an optional filter is left out: %s", error)
            self._untouched, self._stream = True, None
            return b"".join(self._taken)
        if out:
            self._taken = None
        return out


DIRECTION: Final = "sluice_direction"
_LANGUAGES: Final = ("python", "java")


class StorletTeam(SandboxTeam):
    """Runs storlets whose code is in ``store`` at ``place``."""

    environment = STORLET
    heavy: ClassVar[bool] = False  # it waits in green threads, and must not in others
    container_class: ClassVar[type[Container]] = Container

    def __init__(self, place: ContainerSettings, store: CodeStore, limits: Limits | None = None) -> None:
        super().__init__(limits)
        self.place = place
        self._store = store
        self._containers: dict[str, Container] = {}
        self._ready: set[Path] = set()

    def container(self, account: str) -> Container:
        """The container of ``account``, which may be stopped."""
        container = self._containers.get(account)
        if container is None:
            container = self._containers[account] = self.container_class(account, self.place, self.limits)
        return container

    def reader(self, steps: Sequence[Filter], hint: Hint) -> Stream:
        if all(one.params.get(OPTIONAL) is True for one in steps):
            return OptionalReader(lambda: super(StorletTeam, self).reader(steps, hint))
        return super().reader(steps, hint)

    def session(self, steps: Sequence[Step], hint: Hint) -> Session:
        if not hint.account:
            raise FilterError(f"filter `{steps[0].keyword}` runs in its tenant's container, and no tenant is known")
        container = self.container(hint.account)
        undoes = any(step.direction != DO for step in steps)
        return StorletRun(container, [self._task(container, step) for step in steps], self.limits, hint.size, undoes)

    def _task(self, container: Container, step: Step) -> StorletTask:
        if step.language not in _LANGUAGES:
            raise FilterError(f"filter `{step.keyword}` is in `{step.language}`, expected {' or '.join(_LANGUAGES)}")
        files = {_file_name(step): step.code, **step.dependencies}
        name = _daemon_name(step, files)
        folder = container.code / name
        if folder not in self._ready:
            if not folder.is_dir():
                self._place(folder, files)
            self._ready.add(folder)
        inside = str(container.code_inside / name)
        classpath = ":".join(f"{inside}/{file}" for file in files)
        params = {key: _as_text(value) for key, value in step.params.items()}
        params |= {DIRECTION: step.direction, "storlet_execution_path": inside}
        return StorletTask(step.keyword, name, step.main, step.language, classpath, params)

    def _place(self, folder: Path, files: Mapping[str, str]) -> None:
        """Place the verified code of one storlet into its tenant's container: all files or none."""
        with create_folder(folder) as new:
            for name, sha256 in files.items():
                (new / name).write_bytes(self._store.read(sha256))
                (new / name).chmod(0o444)
            new.chmod(0o755)


def _file_name(step: Step) -> str:
    """Return the file name under which its language finds ``step.main``.

    :raises FilterError: when ``main`` is not a name of that language
    """
    if step.language == "java":
        return "storlet.jar"
    module, dot, name = step.main.partition(".")
    if not (dot and module.isidentifier() and name.isidentifier()):
        raise FilterError(f"filter `{step.keyword}` begins at `{step.main}`, expected `module.Class`")
    return f"{module}.py"


def _daemon_name(step: Step, files: Mapping[str, str]) -> str:
    """Return the same name for the same code, entry point and dependencies; short, since it is a socket's name."""

    facts = "\0".join([step.main, *(f"{name}={sha256}" for name, sha256 in sorted(files.items()))])
    return hashlib.sha256(facts.encode()).hexdigest()[:16]


def _as_text(value: Scalar) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
