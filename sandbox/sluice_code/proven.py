"""Uploaded native code in a process that runs it: of each upload the newest revision with a passed trial on this node.

The host of native code (a Swift worker) calls :meth:`ProvenCode.take` once a second.  A revision is loaded when the
node's agent has tried it and put a mark beside the code.  A revision that nevertheless fails to load here is reported;
the next older one is loaded, or stays.  Present requests keep their code, and no failure removes working code.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Container
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar

from sluice_code.code_store import BadUpload, CodeStore
from sluice_core.describe import NATIVE
from sluice_core.errors import SluiceError
from sluice_core.messages.uploads import Upload

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class _Made(Generic[T]):
    upload: Upload
    loaded: T


class ProvenCode(Generic[T]):
    """The loaded code, by keyword."""

    def __init__(
        self,
        kind: str,
        store: CodeStore,
        load: Callable[[Upload, bytes], T],
        logger: logging.Logger | logging.LoggerAdapter[Any],
        taken: Container[str] = (),
    ) -> None:
        """
        :param kind: the kind of the uploads that are loaded; others are ignored
        :param load: makes the hosted object, from an upload as it was in one revision and its code
        :param taken: keywords that uploads must not use
        """
        self._kind = kind
        self._store = store
        self._load = load
        self._logger = logger
        self._reserved = taken
        self._made: dict[str, _Made[T]] = {}
        self._seen: tuple[Upload, ...] | None = None
        self._waiting = False
        self._said: dict[str, str] = {}
        #: Code that cannot be loaded in this process, by keyword, digest and class: it is not loaded again.
        self._failed: set[tuple[str, str, str]] = set()

    @property
    def found(self) -> dict[str, T]:
        """Keyword → the result of ``load``."""
        return {keyword: one.loaded for keyword, one in self._made.items()}

    def update(self, uploads: tuple[Upload, ...]) -> bool:
        """Load these uploads and no others; return True when ``found`` changed.

        Cheap when ``uploads`` is the same tuple as before and all of them have their newest revision loaded.
        """
        if uploads is self._seen and not self._waiting:
            return False
        self._seen, self._waiting = uploads, False
        wanted = {one.keyword: one for one in uploads if self._is_wanted(one)}
        gone = self._made.keys() - wanted.keys()
        for keyword in gone:
            del self._made[keyword]
        self._said = {keyword: reason for keyword, reason in self._said.items() if keyword in wanted}
        fresh = [self._renew(one) for one in wanted.values()]
        return bool(gone) or any(fresh)

    def _is_wanted(self, upload: Upload) -> bool:
        native = upload.kind == self._kind and upload.environment == NATIVE
        return native and upload.running and bool(upload.sha256) and upload.keyword not in self._reserved

    def _renew(self, upload: Upload) -> bool:
        known = self._made.get(upload.keyword)
        for revision in (upload.current, *upload.revisions):
            essence = _essence(upload.at(revision))
            self._waiting = self._waiting or revision.number != upload.revision
            if known is not None and known.upload == essence:
                return False
            loaded = self._loaded(essence)
            if loaded is not None:
                self._made[upload.keyword] = _Made(essence, loaded)
                return True
        self._waiting = True
        if known is None:
            self._say(upload.keyword, "no revision of it is proven on this node yet", logging.INFO)
        return False

    def _loaded(self, upload: Upload) -> T | None:
        """Load the upload; return None when it has no passed trial here, or fails."""
        name = upload.keyword, upload.sha256, upload.main
        if name in self._failed:
            return None
        try:
            if not upload.sha256 or not self._store.is_proven(upload.sha256, self._kind, upload.main):
                return None
            found = self._load(upload, self._store.read(upload.sha256))
        except BadUpload as error:
            self._failed.add(name)
            self._say(upload.keyword, f"revision {upload.revision} is left out: {error}", logging.ERROR)
            return None
        except (SluiceError, OSError) as error:
            self._say(upload.keyword, f"revision {upload.revision} is left out: {error}", logging.ERROR)
            return None
        self._say(upload.keyword, f"revision {upload.revision} is in use", logging.INFO)
        return found

    def _say(self, keyword: str, what: str, level: int) -> None:
        if self._said.get(keyword) != what:
            self._said[keyword] = what
            self._logger.log(level, "sluice: uploaded %s `%s`: %s", self._kind, keyword, what)


def _essence(upload: Upload) -> Upload:
    """``upload`` without the fields that have no effect on a process that runs it."""
    return replace(
        upload, revisions=(), earlier=(), created=0, created_by="", self_service=False, running=True, reverse=False
    )
