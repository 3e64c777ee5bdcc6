"""Checks native code before the API accepts it: parses it, then loads and runs it in a child process.

The child has limits of time and memory, but it is not a sandbox: only administrators upload native code.  A trial
takes seconds, so it needs one of the slots for waiting requests; without a free one the answer is 503.
"""

from __future__ import annotations

import ast
import tempfile
from dataclasses import replace

from sluice_code.code_store import BadUpload, CodeStore, WrongDigest
from sluice_code.loader import check_source
from sluice_code.native_trial import Trial, try_code
from sluice_code.swift_code_store import SwiftCodeStore
from sluice_controller.catalog.backend import Backend
from sluice_controller.catalog.events import add_event
from sluice_core.errors import NotFound, PeerError
from sluice_core.messages.events import TRIAL_FAILED
from sluice_core.messages.uploads import Revision, Upload


def try_native_code(backend: Backend, store: SwiftCodeStore, old: Upload, code: bytes, wanted: Revision) -> Revision:
    """``wanted`` with the description in its ``code``, after a check that it can replace ``old``.

    :raises BadUpload: with the reason why it cannot, which is also logged as an event
    :raises PeerError: when the trial is not possible now, which means nothing for the code
    """
    try:
        return _try_native_code(backend, store, old, code, wanted)
    except BadUpload as error:
        text = f"code of {old.kind} `{old.keyword}` failed its trial: {error}"
        more = {"subject": old.key, "fields": {"sha256": wanted.sha256}}
        add_event(backend, TRIAL_FAILED, text, **more)
        raise


def _try_native_code(backend: Backend, store: SwiftCodeStore, old: Upload, code: bytes, wanted: Revision) -> Revision:
    check_source(code, old.kind)
    main = wanted.main or (_standing_class(code, old.main) if old.sha256 else old.main)
    earlier = _to_be_read(old, wanted.sha256)
    if not backend.waiters.acquire(blocking=False):
        raise PeerError("all slots for trials of code are taken, try again")
    try:
        with tempfile.TemporaryDirectory(prefix="sluice-trial-") as folder:
            place = CodeStore(folder)
            place.add(code, wanted.sha256)
            for one in earlier:
                if not place.has(one.sha256):
                    place.add(fetch_code(store, one), one.sha256)
            verdict = try_code(Trial(old.kind, folder, wanted.sha256, old.keyword, main, earlier))
    except OSError as error:
        raise PeerError(f"code cannot be tried: {error.strerror}") from error
    finally:
        backend.waiters.release()
    if verdict.reason:
        raise BadUpload(verdict.reason)
    return replace(wanted, main=verdict.main, info=verdict.info)


def _standing_class(code: bytes, standing: str) -> str:
    """The class of the last revision, if the code still has one of that name."""
    classes = {one.name for one in ast.parse(code).body if isinstance(one, ast.ClassDef)}
    return standing if standing in classes else ""


def _to_be_read(old: Upload, sha256: str) -> tuple[Revision, ...]:
    """The revisions whose objects the new code must be able to read."""
    if not old.sha256:
        return ()
    known = {(one.sha256, one.main): one for one in (old.current, *old.revisions) if one.info.get("reversible")}
    return tuple(one for one in known.values() if one.sha256 != sha256)


def fetch_code(store: SwiftCodeStore, revision: Revision) -> bytes:
    """The code of a revision, verified.

    :raises PeerError: when Swift does not return it
    """
    with tempfile.TemporaryDirectory(prefix="sluice-code-") as folder:
        try:
            place = CodeStore(folder)
            with store.get(revision.sha256) as pieces:
                place.add(pieces, revision.sha256)
            return place.read(revision.sha256)
        except (NotFound, WrongDigest) as error:
            raise PeerError(f"swift has lost the code of revision {revision.number}: {error}") from error
