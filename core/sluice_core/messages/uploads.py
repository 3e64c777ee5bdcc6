"""Code that administrators upload: filters, metrics of the proxies' workload, and global controllers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Final

from sluice_core.messages.base import Message

#: Kinds of uploaded code.
FILTER_CODE: Final = "filter"
METRIC_CODE: Final = "metric"
CONTROLLER_CODE: Final = "controller"
CODE_KINDS: Final = (FILTER_CODE, METRIC_CODE, CONTROLLER_CODE)
#: Number of earlier revisions of uploaded code that are kept for rollback.
REVISIONS: Final = 10


def upload_key(kind: str, keyword: str) -> str:
    """The key of uploaded code: a filter's keyword, else ``kind/name``."""
    return keyword if kind == FILTER_CODE else f"{kind}/{keyword}"


@dataclass(frozen=True, slots=True)
class Revision(Message):
    """One revision of uploaded code: ``number`` counts from 1, ``main`` is the class, ``info`` its own description.

    ``created`` in unix milliseconds.
    """

    number: int
    sha256: str
    size: int
    main: str = ""
    info: Mapping[str, Any] = field(default_factory=dict)
    created: int = 0
    created_by: str = ""


@dataclass(frozen=True, slots=True)
class Upload(Message):
    """A filter, metric or controller that was registered at run time, and its code.

    ``kind`` is ``filter``, ``metric`` (of the proxies' workload) or ``controller`` (global, run by actor hosts).
    ``keyword`` is its name in sentences, or a controller's name.  ``environment`` is one of
    ``describe.ENVIRONMENTS``; metrics and controllers are native.  ``language`` and ``main`` say how it is started
    (``python``, ``java``, ``wasm``; the class to run).  ``sha256`` (hex) and ``size`` identify the code, which is
    immutable: other code is another revision.  With ``reverse`` it reverses on GET its change of PUT; only
    such filters are recorded on objects.  ``info`` holds the other fields of ``describe.ActionInfo`` (``MetricInfo``,
    ``control.ControllerInfo``), by its field names, parameters as dictionaries; native code describes itself.
    ``dependencies`` are files (name → SHA-256).  ``earlier`` are the SHA-256 of revisions that objects may still have
    been written by.  ``revisions`` are those before this one, newest first, at most :data:`REVISIONS`: a node that
    cannot load the newest uses the first of them that it can load.  ``uploaded`` (unix milliseconds) and
    ``uploaded_by`` say when and by whom the present code was uploaded.  ``running`` is False for a metric that is not
    measured and a controller that is stopped.  ``self_service`` permits members of a project to use it for their
    own containers.
    """

    keyword: str
    environment: str
    language: str
    main: str
    sha256: str
    size: int
    revision: int = 1
    reverse: bool = False
    info: Mapping[str, Any] = field(default_factory=dict)
    dependencies: Mapping[str, str] = field(default_factory=dict)
    earlier: tuple[str, ...] = ()
    created: int = 0
    created_by: str = ""
    self_service: bool = False
    kind: str = FILTER_CODE
    revisions: tuple[Revision, ...] = ()
    running: bool = True
    uploaded: int = 0
    uploaded_by: str = ""

    nested: ClassVar[Mapping[str, type[Message]]] = {"revisions": Revision}

    @property
    def key(self) -> str:
        """Its key: a filter's keyword, ``metric/<NAME>``, ``controller/<name>``."""
        return upload_key(self.kind, self.keyword)

    @property
    def current(self) -> Revision:
        """The newest revision; without a digest until code is uploaded."""
        when, by = self.uploaded, self.uploaded_by
        return Revision(self.revision, self.sha256, self.size, self.main, self.info, when, by)

    def files(self) -> tuple[str, ...]:
        """SHA-256 of every file that a node needs for it, earlier revisions last."""
        return tuple(dict.fromkeys((self.sha256, *self.dependencies.values(), *self.earlier)))

    def at(self, revision: Revision) -> Upload:
        """This upload as it was in ``revision``."""
        return replace(
            self,
            sha256=revision.sha256,
            size=revision.size,
            main=revision.main or self.main,
            info=revision.info,
            revision=revision.number,
            uploaded=revision.created,
            uploaded_by=revision.created_by,
        )
