"""Fetches uploaded code from Swift to this node, and validates native code before the node reports it as usable.

One task: once a second it reads the uploads in the snapshot, fetches missing files one after the other, and runs the
contract suite on native code that was not validated yet, one trial at a time, each in a child of Swift's interpreter
(``sluice_code.native_trial``).  Workers find the files in the folder by their digest, verify the digest, and load
native code only when it is marked as proven.

Rules:

* Isolated code is usable when its files are on this node; its sandbox detects whether it works.
* Native code is usable when it was proven here.  The marks outlive the agent, so a restarted node keeps its code; but
  everything is validated again, since Swift may have been updated, and a wrong mark is removed.
* The newest usable revision counts.  The reason why it is not the newest revision is a *problem*, which the node
  reports.
* After a failure that the code did not cause (Swift is unreachable, no child starts) the fetcher retries with growing
  pauses; after a failure of the code it retries only when the agent restarts.
* Filters of volumes are tried as native code is, confined and with nbdkit.  A node without a konnector leaves them out.
* Code of controllers is not fetched.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from sluice_agent.code.validation import validate_code
from sluice_code.code_store import CodeStore
from sluice_code.native_trial import Interpreter, Trial, Verdict
from sluice_code.swift_code_store import SwiftCodeStore
from sluice_core.describe import NBDKIT, TRIED
from sluice_core.errors import NotFound, SluiceError
from sluice_core.messages.uploads import CONTROLLER_CODE, Revision, Upload

log = logging.getLogger(__name__)

_INTERVAL: Final = 1.0
_FIRST_PAUSE: Final = 1.0
_LONGEST_PAUSE: Final = 60.0

Validator = Callable[[Trial, Interpreter], Verdict]


@dataclass(frozen=True, slots=True)
class _State:
    """The result of the last update of ``upload``: the usable revision, 0 for none, and the SHA-256 of its code.

    ``problem`` says why that is not the newest revision.  ``due`` is when to retry; None: the code itself fails.
    """

    upload: Upload
    number: int = 0
    sha256: str = ""
    problem: str = ""
    due: float | None = None
    pause: float = _FIRST_PAUSE


@dataclass(eq=False)
class CodeFetcher:
    """``uploads`` returns the uploads of this node; ``on_change`` is called when code became usable or failed.

    Native code is validated by ``validate`` in ``interpreter``.  ``has_konnector`` says whether volumes are used here.
    """

    remote_store: SwiftCodeStore | None
    store: CodeStore
    uploads: Callable[[], Iterable[Upload]]
    on_change: Callable[[], None] = lambda: None
    interpreter: Interpreter = field(default_factory=Interpreter)
    validate: Validator = validate_code
    has_konnector: Callable[[], bool] = lambda: False

    def __post_init__(self) -> None:
        self._states: dict[str, _State] = {}
        #: Verdicts of this run of the agent, by trial.
        self._verdicts: dict[bytes, str] = {}

    @property
    def problems(self) -> Mapping[str, str]:
        """``upload/<key>`` → why its newest revision is not usable here."""
        now = {upload.key: upload.revision for upload in self.uploads()}
        return {
            f"upload/{key}": state.problem
            for key, state in self._states.items()
            if state.problem and now.get(key) == state.upload.revision
        }

    @property
    def usable_revisions(self) -> Mapping[str, int]:
        """Key → the revision that is usable here."""
        usable = {}
        for upload in self.uploads():
            state = self._states.get(upload.key)
            # an earlier upload with this name may have another revision
            if state is not None and state.number and _numbered(upload, state.number).sha256 == state.sha256:
                usable[upload.key] = state.number
        return usable

    async def run(self) -> None:
        """Fetch and validate until cancelled."""
        while True:
            await self._update_due(time.monotonic())
            await asyncio.sleep(_INTERVAL)

    async def fetch(self) -> None:
        """Fetch and validate everything now, without pauses."""
        await self._update_due(float("inf"))

    async def _update_due(self, now: float) -> None:
        try:
            known_uploads = self.uploads()
        except SluiceError as error:
            log.warning("uploads cannot be read: %s", error)
            return
        uploads = {one.key: one for one in known_uploads if one.sha256 and self._is_for_this_node(one)}
        self._states = {key: state for key, state in self._states.items() if key in uploads}
        for upload in uploads.values():
            if self._is_due(upload, now):
                await self._update(upload)

    def _is_for_this_node(self, upload: Upload) -> bool:
        if upload.environment == NBDKIT:
            return self.has_konnector()
        return upload.kind != CONTROLLER_CODE

    def _is_due(self, upload: Upload, now: float) -> bool:
        state = self._states.get(upload.key)
        if state is None or state.upload != upload:
            return True
        return not self._is_complete(state) if state.due is None else state.due <= now

    async def _update(self, upload: Upload) -> None:
        """Make the newest possible revision usable."""
        before = self._states.get(upload.key, _State(upload))
        update = self._update_tried if upload.environment in TRIED else self._update_isolated
        number, problem, passing = await update(upload)
        state = _State(upload, number, _numbered(upload, number).sha256, problem)
        if problem and passing:
            repeated = before.upload == upload and before.due is not None
            pause = min(before.pause * 2, _LONGEST_PAUSE) if repeated else _FIRST_PAUSE
            state = replace(state, due=time.monotonic() + pause, pause=pause)
        self._states[upload.key] = state
        if problem and problem != before.problem:
            log.warning("upload/%s: %s", upload.key, problem)
        if (before.number, before.sha256, before.problem) != (number, state.sha256, problem):
            if number:
                log.info("%s `%s`: revision %d is usable", upload.kind, upload.keyword, number)
            self.on_change()

    def _is_complete(self, state: _State) -> bool:
        """Whether nothing was removed since the last update."""
        upload = state.upload
        if upload.environment not in TRIED:
            return all(self.store.has(one) for one in upload.files())
        one = upload.at(_numbered(upload, state.number))
        return not one.sha256 or self.store.is_proven(one.sha256, one.kind, one.main)

    # -- isolated code; an update returns the usable revision, a problem, and whether a retry can solve the problem

    async def _update_isolated(self, upload: Upload) -> tuple[int, str, bool]:
        problem = ""
        for sha256 in upload.files():
            try:
                await self._ensure_stored(sha256, upload)
            except (SluiceError, OSError) as error:
                problem = f"code of {upload.kind} `{upload.keyword}`: {error}"
        return next((one.number for one in _revisions(upload) if self._has_all(upload.at(one))), 0), problem, True

    def _has_all(self, upload: Upload) -> bool:
        return all(self.store.has(one) for one in (upload.sha256, *upload.dependencies.values()) if one)

    async def _ensure_stored(self, sha256: str, upload: Upload) -> None:
        """Fetch the file unless it is on this node.

        :raises SluiceError: when it cannot be fetched
        """
        if not self.store.has(sha256):
            await asyncio.to_thread(self._fetch, sha256)
            log.info("fetched code `%s` of %s `%s`", sha256, upload.kind, upload.keyword)

    def _fetch(self, sha256: str) -> None:
        if self.remote_store is None:
            raise SluiceError(
                "this agent was given no place for code, its options `code_auth_url` and following name one"
            )
        with self.remote_store.get(sha256) as pieces:
            self.store.add(pieces, sha256)

    # -- native code, and filters of volumes

    async def _update_tried(self, upload: Upload) -> tuple[int, str, bool]:
        why, passing, usable = "", False, 0
        for revision in _revisions(upload):
            tried = upload.at(revision)
            try:
                reason = await self._validation_error(tried, upload)
            except (SluiceError, OSError) as error:
                reason, passing = str(error), True
            if revision.number == upload.revision:
                why = reason
            if self.store.is_proven(tried.sha256, tried.kind, tried.main):
                usable = revision.number
                break
        return usable, f"revision {upload.revision}: {why}" if why else "", passing

    async def _validation_error(self, tried: Upload, upload: Upload) -> str:
        """Why ``tried``, a revision of ``upload``, is unusable; empty when it is proven.

        :raises SluiceError: when it cannot be fetched, or cannot be validated now
        """
        await self._ensure_stored(tried.sha256, upload)
        await asyncio.to_thread(self.store.read, tried.sha256)  # a damaged file is fetched again at the next update
        earlier = [
            revision
            for revision in _readable_revisions(tried, upload)
            if await self._ensure_earlier_stored(revision, upload)
        ]
        folder = str(self.store.folder.absolute())
        trial = Trial(tried.kind, folder, tried.sha256, tried.keyword, tried.main, tuple(earlier))
        if tried.environment == NBDKIT:
            trial = replace(trial, environment=NBDKIT, info={**tried.info, "reversible": upload.reverse})
        name = trial.encode()
        reason = self._verdicts.get(name)
        if reason is None:
            verdict = await asyncio.to_thread(self.validate, trial, self.interpreter)
            reason = self._verdicts[name] = verdict.reason
        if reason:
            self.store.unmark_proven(tried.sha256, tried.kind, tried.main)
        else:
            self.store.mark_proven(tried.sha256, tried.kind, tried.main)
        return reason

    async def _ensure_earlier_stored(self, revision: Revision, upload: Upload) -> bool:
        """Whether an earlier revision is on this node; later revisions are usable though Swift has lost one."""
        try:
            await self._ensure_stored(revision.sha256, upload)
        except NotFound as error:
            log.warning("revision %d of %s `%s` is lost: %s", revision.number, upload.kind, upload.keyword, error)
            return False
        return True


def _revisions(upload: Upload) -> Iterator[Revision]:
    """The revisions with code, newest first."""
    return (one for one in (upload.current, *upload.revisions) if one.sha256)


def _numbered(upload: Upload, number: int) -> Revision:
    return next((one for one in _revisions(upload) if one.number == number), Revision(0, "", 0))


def _readable_revisions(tried: Upload, upload: Upload) -> Iterator[Revision]:
    """The revisions before ``tried`` whose objects ``tried`` must be able to read."""
    seen = {(tried.sha256, tried.main)}
    for revision in _revisions(upload):
        name = revision.sha256, revision.main or upload.main
        if revision.number < tried.revision and _is_reversible(upload, revision) and name not in seen:
            seen.add(name)
            yield Revision(revision.number, revision.sha256, revision.size, name[1])


def _is_reversible(upload: Upload, revision: Revision) -> bool:
    """Whether the filter has an inverse: declared by native code, or by the upload of a volume filter."""
    return upload.reverse if upload.environment == NBDKIT else bool(revision.info.get("reversible"))
