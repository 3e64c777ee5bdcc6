"""Brings uploaded code from Swift to this node, and tries native code before it says that the node can run it.

One task: once a second it looks at the snapshot's uploads, fetches what is missing, one file after the other, and
holds what was not tried yet against its contract, one trial at a time, each in a child of Swift's interpreter
(``sluice_core.code.sandbox_trial``).  Workers find the files in the folder by their digest, verify them once more,
and take native
code only when it is marked as proven.

Rules:

* Isolated code is usable when its files are here; whether it works is found out in its sandbox.
* Native code is usable when it was proven here.  Marks outlive us, so a node that is restarted goes on with what it
  had; but everything is tried again, since Swift may have been updated meanwhile, and a wrong mark is taken away.
* The newest usable revision counts.  Why it is not the newest that there is, is a *problem*, which the node reports.
* What failed because of the way (Swift is away, no child can be had) is tried again with growing pauses; what failed
  because of the code is not, until we are restarted.
* Controllers are no node's business.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final

from sluice_agent.code.validation import tried
from sluice_core.code.code_store import CodeStore
from sluice_core.code.sandbox_trial import Interpreter, Trial, Verdict
from sluice_core.code.swift_code_store import SwiftCodeStore
from sluice_core.describe import NATIVE
from sluice_core.errors import NotFound, SluiceError
from sluice_core.messages.policies import CONTROLLER_CODE, Revision, Upload

log = logging.getLogger(__name__)

_LOOK_EVERY: Final = 1.0
_FIRST_PAUSE: Final = 1.0
_LONGEST_PAUSE: Final = 60.0
#: Of what is not usable at all.
_NOTHING: Final = (0, "")

Try = Callable[[Trial, Interpreter], Verdict]


@dataclass(frozen=True, slots=True)
class _Problem:
    """Why ``upload`` is not in use as it is; ``due`` is when to look again, None: it is the code's own fault."""

    upload: Upload
    reason: str
    due: float | None = None
    pause: float = _FIRST_PAUSE


class CodeFetcher:
    """``uploads`` is asked for what this node should have; ``told`` is called when something came or failed."""

    def __init__(
        self,
        shelf: SwiftCodeStore | None,
        store: CodeStore,
        uploads: Callable[[], Iterable[Upload]],
        told: Callable[[], None] = lambda: None,
        interpreter: Interpreter | None = None,
        try_out: Try = tried,
    ) -> None:
        """
        :param interpreter: who tries native code
        :param try_out: how it is tried
        """
        self._shelf = shelf
        self._store = store
        self._uploads = uploads
        self._told = told
        self._interpreter = interpreter or Interpreter()
        self._try_out = try_out
        self._problems: dict[str, _Problem] = {}
        self._code: dict[str, tuple[int, str]] = {}
        #: Key → the upload that was looked at last.
        self._settled: dict[str, Upload] = {}
        #: Verdicts of this agent, by what was tried.
        self._tried: dict[bytes, str] = {}

    @property
    def problems(self) -> Mapping[str, str]:
        """``upload/<key>`` → why its newest revision is not usable here."""
        now = {one.key: one.revision for one in self._uploads()}
        return {
            f"upload/{key}": one.reason for key, one in self._problems.items() if now.get(key) == one.upload.revision
        }

    @property
    def code(self) -> Mapping[str, int]:
        """Key → the revision that is usable here."""
        found = {}
        for one in self._uploads():
            number, sha256 = self._code.get(one.key, _NOTHING)
            if sha256 and _numbered(one, number).sha256 == sha256:  # and not of another one that had this name before
                found[one.key] = number
        return found

    async def run(self) -> None:
        """Fetch and try until cancelled."""
        while True:
            await self._look(time.monotonic())
            await asyncio.sleep(_LOOK_EVERY)

    async def fetch(self) -> None:
        """Fetch and try everything now, also what pauses."""
        await self._look(float("inf"))

    async def _look(self, now: float) -> None:
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
                await self._bring(key, upload)

    def _is_due(self, upload: Upload, now: float) -> bool:
        problem = self._problems.get(upload.key)
        if problem is None or problem.upload != upload:
            return self._settled.get(upload.key) != upload or not self._here(upload)
        return not self._here(upload) if problem.due is None else problem.due <= now

    async def _bring(self, key: str, upload: Upload) -> None:
        """Make the newest revision usable that can be."""
        before = self._code.get(key), self._problems.get(key)
        if upload.environment == NATIVE:
            found, problem = await self._native(upload)
        else:
            found, problem = await self._isolated(upload)
        self._settled[key] = upload
        self._set(upload, found)
        if problem is None:
            self._problems.pop(key, None)
        else:
            self._problems[key] = self._again(problem, before[1])
            if before[1] is None or before[1].reason != problem.reason:
                log.warning("upload/%s: %s", key, problem.reason)
        after = self._code.get(key), self._problems.get(key)
        if before[0] != after[0] or _reason(before[1]) != _reason(after[1]):
            if found:
                log.info("%s `%s`: revision %d is usable", upload.kind, upload.keyword, found)
            self._told()

    def _set(self, upload: Upload, number: int) -> None:
        if number:
            self._code[upload.key] = number, _numbered(upload, number).sha256
        else:
            self._code.pop(upload.key, None)

    @staticmethod
    def _again(problem: _Problem, before: _Problem | None) -> _Problem:
        """When to look again, after longer and longer pauses."""
        if problem.due is None:
            return problem
        repeated = before is not None and before.upload == problem.upload and before.due is not None
        pause = min(before.pause * 2, _LONGEST_PAUSE) if repeated and before is not None else _FIRST_PAUSE
        return replace(problem, due=time.monotonic() + pause, pause=pause)

    # -- isolated code

    async def _isolated(self, upload: Upload) -> tuple[int, _Problem | None]:
        problem = None
        for sha256 in upload.files():
            try:
                await self._have(sha256, upload)
            except (SluiceError, OSError) as error:
                problem = _Problem(upload, f"code of {upload.kind} `{upload.keyword}`: {error}", 0.0)
        return next((one.number for one in _revisions(upload) if self._all_here(upload.at(one))), 0), problem

    def _all_here(self, upload: Upload) -> bool:
        return all(self._store.has(one) for one in (upload.sha256, *upload.dependencies.values()) if one)

    def _here(self, upload: Upload) -> bool:
        """Whether nothing was taken away since it was settled."""
        if upload.environment != NATIVE:
            return all(self._store.has(one) for one in upload.files())
        one = upload.at(_numbered(upload, self._code.get(upload.key, _NOTHING)[0]))
        return not one.sha256 or self._store.proven(one.sha256, one.kind, one.main)

    async def _have(self, sha256: str, upload: Upload) -> None:
        """
        :raises SluiceError: when it cannot be had
        """
        if not self._store.has(sha256):
            await asyncio.to_thread(self._fetched, sha256)
            log.info("fetched code `%s` of %s `%s`", sha256, upload.kind, upload.keyword)

    def _fetched(self, sha256: str) -> None:
        if self._shelf is None:
            raise SluiceError(
                "this agent was given no place for code, its options `code_auth_url` and following name one"
            )
        with self._shelf.get(sha256) as pieces:
            self._store.add(pieces, sha256)

    # -- native code

    async def _native(self, upload: Upload) -> tuple[int, _Problem | None]:
        why, due, usable = "", None, 0
        for revision in _revisions(upload):
            one = upload.at(revision)
            try:
                reason = await self._try(one, upload)
            except (SluiceError, OSError) as error:
                reason, due = str(error), 0.0
            if revision.number == upload.revision:
                why = reason
            if self._store.proven(one.sha256, one.kind, one.main):
                usable = revision.number
                break
        return usable, _Problem(upload, f"revision {upload.revision}: {why}", due) if why else None

    async def _try(self, one: Upload, upload: Upload) -> str:
        """Why ``one`` revision of ``upload`` is unfit; empty when it is proven.

        :raises SluiceError: when it cannot be had, or cannot be tried now
        """
        await self._have(one.sha256, upload)
        await asyncio.to_thread(self._store.read, one.sha256)  # what is damaged is fetched anew next time
        earlier = [revision for revision in _to_be_read(one, upload) if await self._has_earlier(revision, upload)]
        folder = str(self._store.folder.absolute())
        trial = Trial(one.kind, folder, one.sha256, one.keyword, one.main, tuple(earlier))
        name = trial.encode()
        reason = self._tried.get(name)
        if reason is None:
            verdict = await asyncio.to_thread(self._try_out, trial, self._interpreter)
            reason = self._tried[name] = verdict.reason
        if reason:
            self._store.disprove(one.sha256, one.kind, one.main)
        else:
            self._store.prove(one.sha256, one.kind, one.main)
        return reason

    async def _has_earlier(self, revision: Revision, upload: Upload) -> bool:
        """What Swift has lost can be tried no more; that is no reason to refuse what follows it."""
        try:
            await self._have(revision.sha256, upload)
        except NotFound as error:
            log.warning("revision %d of %s `%s` is lost: %s", revision.number, upload.kind, upload.keyword, error)
            return False
        return True


def _revisions(upload: Upload) -> Iterator[Revision]:
    """Those that have code, newest first."""
    return (one for one in (upload.current, *upload.revisions) if one.sha256)


def _numbered(upload: Upload, number: int) -> Revision:
    return next((one for one in _revisions(upload) if one.number == number), Revision(0, "", 0))


def _to_be_read(one: Upload, upload: Upload) -> Iterator[Revision]:
    """The revisions before ``one`` whose objects it must be able to read."""
    seen = {(one.sha256, one.main)}
    for revision in _revisions(upload):
        name = revision.sha256, revision.main or upload.main
        if revision.number < one.revision and revision.info.get("reversible") and name not in seen:
            seen.add(name)
            yield Revision(revision.number, revision.sha256, revision.size, name[1])


def _reason(problem: _Problem | None) -> str:
    return "" if problem is None else problem.reason
