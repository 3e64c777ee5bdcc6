"""How uploaded code becomes a filter: the common part of the isolated environments.

An :class:`~sluice_core.messages.uploads.Upload` and the environment that runs it (a :class:`SandboxTeam`) make a
``Filter`` subclass (:func:`filter_class`); hosts treat it like any other.  An environment has to
implement one method: :meth:`SandboxTeam.session`, a stream through untrusted code.  Other guarantees to the hosts are
added outside of the sandbox, in :mod:`sluice_sandbox.guard`: counted and summed bytes in both directions, a limit on
growth, and a verified end.

Naming: a *step* is one filter in one direction for one stream, *do* is its transformation on PUT or at reading time,
*undo* reverses *do*.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar

from sluice_code.code_store import BadUpload, CodeStore, WrongDigest
from sluice_core.messages.uploads import Upload
from sluice_filters.api import Filter, FilterEnvironment, FilterError, GroupEncoder, Hint, Record, Stream
from sluice_sandbox import guard
from sluice_sandbox.descriptions import describe_upload
from sluice_sandbox.isolated import IsolatedFilter
from sluice_sandbox.limits import DO, UNDO, Limits, Session, Step


class SandboxTeam(FilterEnvironment):
    """An isolated environment; a subclass implements :meth:`session`."""

    environment: ClassVar[str]
    #: See ``Filter.heavy``.
    heavy: ClassVar[bool] = False

    def __init__(self, limits: Limits | None = None) -> None:
        self.limits = Limits() if limits is None else limits

    def session(self, steps: Sequence[Step], hint: Hint) -> Session:
        """Return a stream through ``steps``, in that order, for the tenant ``hint.account``.

        :raises FilterError: when the environment cannot run them now
        """
        raise FilterError(f"environment `{self.environment}` runs nothing")

    def admit(self, upload: Upload, code: bytes) -> None:
        """Check code before it is offered, once per process, and prepare it where possible.

        :raises BadUpload: when it cannot run here, with the reason
        """

    def register(self, one: type[IsolatedFilter]) -> None:
        """Record a filter that was made for this environment."""

    def encoder(self, steps: Sequence[Filter], hint: Hint) -> GroupEncoder:
        ours = [_uploaded(one) for one in steps]
        return guard.GuardedEncoder(self.session([_do(one) for one in ours], hint), ours, self.limits)

    def reader(self, steps: Sequence[Filter], hint: Hint) -> Stream:
        return self.encoder(steps[::-1], hint)

    def decoder(self, steps: Sequence[tuple[Filter, Record]], hint: Hint) -> Stream:
        marks = [guard.StepRecord.parse(record) for _, record in steps]
        undo = [
            replace(_do(_uploaded(one)), code=mark.code, main=mark.main, params=mark.params, direction=UNDO)
            for (one, _), mark in zip(reversed(steps), reversed(marks), strict=True)
        ]
        keywords = [one.info.keyword for one, _ in steps]
        return guard.GuardedDecoder(self.session(undo, hint), marks, keywords, self.limits)


def filter_class(upload: Upload, team: SandboxTeam) -> type[IsolatedFilter]:
    """Return the filter of ``upload``, run by ``team``.

    :raises BadUpload: when it is not a valid filter, with all reasons
    """
    if upload.environment != team.environment:
        raise BadUpload(f"filter `{upload.keyword}` is for `{upload.environment}`, expected `{team.environment}`")
    members = {"info": describe_upload(upload), "upload": upload, "team": team, "heavy": team.heavy}
    found = type(f"Isolated_{upload.keyword}", (IsolatedFilter,), members)
    team.register(found)
    return found


def load_filter(upload: Upload, store: CodeStore, team: SandboxTeam) -> type[IsolatedFilter]:
    """Return the filter of ``upload``, its code in ``store`` verified and admitted by ``team``.

    :raises SluiceError: when the code is missing, is not the registered code, or is not a valid filter of ``team``
    """
    code = store.read(upload.sha256)
    if len(code) != upload.size:
        raise WrongDigest(f"code of filter `{upload.keyword}` has {len(code)} bytes, expected {upload.size}")
    found = filter_class(upload, team)
    team.admit(upload, code)
    return found


def _uploaded(filter_class: Filter) -> IsolatedFilter:
    if not isinstance(filter_class, IsolatedFilter):
        raise FilterError(f"filter `{filter_class.info.keyword}` is not an uploaded one")
    return filter_class


def _do(one: IsolatedFilter) -> Step:
    upload, params = one.upload, one.given_parameters()
    return Step(upload.keyword, upload.sha256, upload.main, params, DO, upload.language, upload.dependencies)
