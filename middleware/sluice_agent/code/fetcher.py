"""Fetches uploaded code from Swift to this node, and validates native code before the node reports it as usable.

One task: once a second it reads the uploads in the snapshot, fetches missing files one after the other, and runs the
contract suite on native code that was not validated yet, one trial at a time, each in a child of Swift's interpreter
(``sluice_core.code.sandbox_trial``).  Workers find the files in the folder by their digest, verify the digest, and load
native code only when it is marked as proven.

Rules:

* Isolated code is usable when its files are here; its sandbox finds out whether it works.
* Native code is usable when it was proven here.  The marks outlive the agent, so a restarted node keeps its code; but
  everything is validated again, since Swift may have been updated, and a wrong mark is removed.
* The newest usable revision counts.  The reason why it is not the newest one is a *problem*, which the node reports.
* After a failure that is not the code's fault (Swift is away, no child starts) it retries with growing pauses; after
  one that is, not before the agent restarts.
* Code of controllers is not fetched.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final

from sluice_agent.code.validation import validate_code
from sluice_core.code.code_store import CodeStore
from sluice_core.code.sandbox_trial import Interpreter, Trial, Verdict
from sluice_core.code.swift_code_store import SwiftCodeStore
from sluice_core.describe import NATIVE
from sluice_core.errors import NotFound, SluiceError
from sluice_core.messages.uploads import CONTROLLER_CODE, Revision, Upload

log = logging.getLogger(__name__)

_INTERVAL: Final = 1.0
_FIRST_PAUSE: Final = 1.0
_LONGEST_PAUSE: Final = 60.0
#: Of what is not usable at all.
_NO_REVISION: Final = (0, "")

Validator = Callable[[Trial, Interpreter], Verdict]


@dataclass(frozen=True, slots=True)
class _Problem:
    """Why the newest revision of ``upload`` is not usable; ``due``: when to retry; None: the code is at fault."""

    upload: Upload
    reason: str
    due: float | None = None
    pause: float = _FIRST_PAUSE


class CodeFetcher:
    """``uploads`` returns the uploads of this node; ``on_change`` is called when code became usable or failed."""

    def __init__(
        self,
        remote_store: SwiftCodeStore | None,
        store: CodeStore,
        uploads: Callable[[], Iterable[Upload]],
        on_change: Callable[[], None] = lambda: None,
        interpreter: Interpreter | None = None,
        validate: Validator = validate_code,
    ) -> None:
        """
        :param interpreter: in which native code is validated
        :param validate: returns the verdict on native code
        """
        self._remote_store = remote_store
        self._store = store
        self._uploads = uploads
        self._on_change = on_change
        self._interpreter = interpreter or Interpreter()
        self._validate = validate
        self._problems: dict[str, _Problem] = {}
        self._code: dict[str, tuple[int, str]] = {}
        #: Key → the upload as it was when it was updated last.
        self._settled: dict[str, Upload] = {}
        #: Verdicts of this run of the agent, by trial.
        self._verdicts: dict[bytes, str] = {}

    @property
    def problems(self) -> Mapping[str, str]:
        """``upload/<key>`` → why its newest revision is not usable here."""
        now = {upload.key: upload.revision for upload in self._uploads()}
        return {
            f"upload/{key}": problem.reason
            for key, problem in self._problems.items()
            if now.get(key) == problem.upload.revision
        }

    @property
    def usable_revisions(self) -> Mapping[str, int]:
        """Key → the revision that is usable here."""
        usable = {}
        for upload in self._uploads():
            number, sha256 = self._code.get(upload.key, _NO_REVISION)
            if sha256 and _numbered(upload, number).sha256 == sha256:  # not of an earlier upload with this name
                usable[upload.key] = number
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
            known_uploads = self._uploads()
        except SluiceError as error:
            log.warning("uploads cannot be read: %s", error)
            return
        uploads = {one.key: one for one in known_uploads if one.sha256 and one.kind != CONTROLLER_CODE}
        for known in (self._problems, self._code, self._settled):
            for key in known.keys() - uploads.keys():
                del known[key]
        for key, upload in uploads.items():
            if self._is_due(upload, now):
                await self._update(key, upload)

    def _is_due(self, upload: Upload, now: float) -> bool:
        problem = self._problems.get(upload.key)
        if problem is None or problem.upload != upload:
            return self._settled.get(upload.key) != upload or not self._is_complete(upload)
        return not self._is_complete(upload) if problem.due is None else problem.due <= now

    async def _update(self, key: str, upload: Upload) -> None:
        """Make the newest possible revision usable."""
        before = self._code.get(key), self._problems.get(key)
        if upload.environment == NATIVE:
            found, problem = await self._update_native(upload)
        else:
            found, problem = await self._update_isolated(upload)
        self._settled[key] = upload
        self._set(upload, found)
        if problem is None:
            self._problems.pop(key, None)
        else:
            self._problems[key] = self._with_pause(problem, before[1])
            if before[1] is None or before[1].reason != problem.reason:
                log.warning("upload/%s: %s", key, problem.reason)
        after = self._code.get(key), self._problems.get(key)
        if before[0] != after[0] or _reason(before[1]) != _reason(after[1]):
            if found:
                log.info("%s `%s`: revision %d is usable", upload.kind, upload.keyword, found)
            self._on_change()

    def _set(self, upload: Upload, number: int) -> None:
        if number:
            self._code[upload.key] = number, _numbered(upload, number).sha256
        else:
            self._code.pop(upload.key, None)

    @staticmethod
    def _with_pause(problem: _Problem, before: _Problem | None) -> _Problem:
        """The problem with the moment of the next retry; pauses grow."""
        if problem.due is None:
            return problem
        repeated = before is not None and before.upload == problem.upload and before.due is not None
        pause = min(before.pause * 2, _LONGEST_PAUSE) if repeated and before is not None else _FIRST_PAUSE
        return replace(problem, due=time.monotonic() + pause, pause=pause)

    # -- isolated code

    async def _update_isolated(self, upload: Upload) -> tuple[int, _Problem | None]:
        problem = None
        for sha256 in upload.files():
            try:
                await self._ensure_stored(sha256, upload)
            except (SluiceError, OSError) as error:
                problem = _Problem(upload, f"code of {upload.kind} `{upload.keyword}`: {error}", 0.0)
        return next((one.number for one in _revisions(upload) if self._has_all(upload.at(one))), 0), problem

    def _has_all(self, upload: Upload) -> bool:
        return all(self._store.has(one) for one in (upload.sha256, *upload.dependencies.values()) if one)

    def _is_complete(self, upload: Upload) -> bool:
        """Whether nothing was removed since the last update."""
        if upload.environment != NATIVE:
            return all(self._store.has(one) for one in upload.files())
        one = upload.at(_numbered(upload, self._code.get(upload.key, _NO_REVISION)[0]))
        return not one.sha256 or self._store.is_proven(one.sha256, one.kind, one.main)

    async def _ensure_stored(self, sha256: str, upload: Upload) -> None:
        """
        :raises SluiceError: when it cannot be fetched
        """
        if not self._store.has(sha256):
            await asyncio.to_thread(self._fetch, sha256)
            log.info("fetched code `%s` of %s `%s`", sha256, upload.kind, upload.keyword)

    def _fetch(self, sha256: str) -> None:
        if self._remote_store is None:
            raise SluiceError(
                "this agent was given no place for code, its options `code_auth_url` and following name one"
            )
        with self._remote_store.get(sha256) as pieces:
            self._store.add(pieces, sha256)

    # -- native code

    async def _update_native(self, upload: Upload) -> tuple[int, _Problem | None]:
        why, due, usable = "", None, 0
        for revision in _revisions(upload):
            one = upload.at(revision)
            try:
                reason = await self._validation_error(one, upload)
            except (SluiceError, OSError) as error:
                reason, due = str(error), 0.0
            if revision.number == upload.revision:
                why = reason
            if self._store.is_proven(one.sha256, one.kind, one.main):
                usable = revision.number
                break
        return usable, _Problem(upload, f"revision {upload.revision}: {why}", due) if why else None

    async def _validation_error(self, one: Upload, upload: Upload) -> str:
        """Why ``one`` revision of ``upload`` is unusable; empty when it is proven.

        :raises SluiceError: when it cannot be fetched, or cannot be validated now
        """
        await self._ensure_stored(one.sha256, upload)
        await asyncio.to_thread(self._store.read, one.sha256)  # what is damaged is fetched anew next time
        earlier = [
            revision
            for revision in _readable_revisions(one, upload)
            if await self._ensure_earlier_stored(revision, upload)
        ]
        folder = str(self._store.folder.absolute())
        trial = Trial(one.kind, folder, one.sha256, one.keyword, one.main, tuple(earlier))
        name = trial.encode()
        reason = self._verdicts.get(name)
        if reason is None:
            verdict = await asyncio.to_thread(self._validate, trial, self._interpreter)
            reason = self._verdicts[name] = verdict.reason
        if reason:
            self._store.unmark_proven(one.sha256, one.kind, one.main)
        else:
            self._store.mark_proven(one.sha256, one.kind, one.main)
        return reason

    async def _ensure_earlier_stored(self, revision: Revision, upload: Upload) -> bool:
        """Whether an earlier revision is here; one that Swift has lost is no reason to refuse the later ones."""
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


def _readable_revisions(one: Upload, upload: Upload) -> Iterator[Revision]:
    """The revisions before ``one`` whose objects it must be able to read."""
    seen = {(one.sha256, one.main)}
    for revision in _revisions(upload):
        name = revision.sha256, revision.main or upload.main
        if revision.number < one.revision and revision.info.get("reversible") and name not in seen:
            seen.add(name)
            yield Revision(revision.number, revision.sha256, revision.size, name[1])


def _reason(problem: _Problem | None) -> str:
    return "" if problem is None else problem.reason
