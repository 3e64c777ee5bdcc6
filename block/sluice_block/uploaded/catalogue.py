"""The uploaded filters that this node can use: found by keyword, with verified code and checked parameters.

The node's agent fetches the code, tries it and puts a mark beside it (:mod:`sluice_code.code_store`); the newest
revision with a mark is used.  A revision that failed here is refused, and no older one is used in its place, which
might not be able to read data that the newer one has stored.
"""

from __future__ import annotations

import difflib
import os
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from typing import ClassVar, Final

from sluice_block.stack.filters import FILTERS
from sluice_block.uploaded.sandbox import Confinement
from sluice_code.code_store import CodeStore
from sluice_code.volume_filters import describe_volume_filter
from sluice_core.describe import NBDKIT, ActionInfo, Parameter, Scalar
from sluice_core.errors import CallerError, Conflict, DecodeError, PeerError
from sluice_core.messages.base import Message
from sluice_core.messages.uploads import FILTER_CODE, Upload
from sluice_volumes.messages import StackStep

#: The name of the file.
REFUSALS: Final = "refused-filters.json"


@dataclass(frozen=True, slots=True)
class Refusal(Message):
    """One revision, identified by its digest, and the reason of its refusal; ``at`` in unix seconds."""

    sha256: str
    keyword: str
    revision: int
    reason: str
    volume: str
    at: float


@dataclass(frozen=True, slots=True)
class _RefusalList(Message):
    refused: tuple[Refusal, ...] = ()

    nested: ClassVar[Mapping[str, type[Message]]] = {"refused": Refusal}


@dataclass(frozen=True)
class Refusals:
    """The refusals, in ``file``; threads may share it."""

    file: Path
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def reason(self, sha256: str) -> str:
        """Return why this code is not used here; empty when it may be used.

        :raises PeerError: when the file cannot be read
        """
        return next((one.reason for one in self._read().refused if one.sha256 == sha256), "")

    def add(self, keyword: str, revision: int, sha256: str, reason: str, volume: str) -> None:
        """Refuse this code from now on; it is on the disk when this returns.

        :raises PeerError: when the file cannot be written
        """
        with self._lock:
            known = self._read()
            fresh = Refusal(sha256, keyword, revision, reason, volume, time.time())
            others = tuple(one for one in known.refused if one.sha256 != sha256)
            self._write(replace(known, refused=(*others, fresh)))

    def _read(self) -> _RefusalList:
        try:
            return _RefusalList.decode(self.file.read_bytes())
        except FileNotFoundError:
            return _RefusalList()
        except (OSError, DecodeError) as error:
            raise PeerError(f"`{self.file}` cannot be read, it names the filters that failed here: {error}") from error

    def _write(self, known: _RefusalList) -> None:
        temporary = self.file.with_name(self.file.name + ".new")
        try:
            self.file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            with open(temporary, "wb") as file:
                file.write(known.encode())
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(self.file)
        except OSError as error:
            raise PeerError(f"`{self.file}` cannot be written: {error}") from error


_PYTHON_TYPES: Final[Mapping[str, tuple[type, ...]]] = {
    "str": (str,),
    "bool": (bool,),
    "int": (int,),
    "float": (int, float),
}


@dataclass(frozen=True, slots=True)
class UploadedFilter:
    """One revision of an uploaded filter with its parameters for nbdkit."""

    keyword: str
    revision: int
    sha256: str
    arguments: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class UploadedFilters:
    """
    :param uploads: returns the registered uploads
    :param bounds: limits of each of them
    """

    uploads: Callable[[], Iterable[Upload]]
    store: CodeStore
    refusals: Refusals
    bounds: Confinement = field(default_factory=Confinement)

    def split(self, steps: Sequence[StackStep]) -> tuple[tuple[StackStep, ...], tuple[StackStep, ...]]:
        """Return the installed filters of a stack, and the uploaded one: none or one, next to the source.

        :raises CallerError: when an uploaded filter stands elsewhere, or a keyword is unknown
        """
        known = self._registered()
        for above, below in pairwise(steps):
            if above.keyword in known:
                raise CallerError(
                    f"uploaded filter `{above.keyword}` stands before `{below.keyword}`, expected it last in the stack"
                )
        if not steps or steps[-1].keyword in FILTERS:
            return tuple(steps), ()
        keyword = steps[-1].keyword
        if keyword not in known:
            near = difflib.get_close_matches(keyword, [*FILTERS, *known], 1)
            hint = f"did you mean `{near[0]}`" if near else f"expected one of {', '.join(sorted([*FILTERS, *known]))}"
            raise CallerError(f"no filter `{keyword}` for volumes, {hint}")
        return tuple(steps[:-1]), (steps[-1],)

    def find(self, step: StackStep) -> UploadedFilter:
        """Return the present uploaded filter for a step of a stack.

        :raises CallerError: when a parameter cannot be used
        :raises Conflict: when this node can use no revision, or the newest one failed here
        """
        upload = self._registered().get(step.keyword)
        if upload is None:
            raise Conflict(f"filter `{step.keyword}` is not registered any more")
        proven = (one for one in (upload.current, *upload.revisions) if self._is_proven(upload.at(one)))
        revision = next(proven, None)
        if revision is None:
            raise Conflict(f"no revision of filter `{step.keyword}` has passed its trial on this node")
        reason = self.refusals.reason(revision.sha256)
        if reason:
            raise Conflict(f"revision {revision.number} of filter `{step.keyword}` is refused on this node: {reason}")
        info = describe_volume_filter(upload.at(revision))
        return UploadedFilter(step.keyword, revision.number, revision.sha256, nbdkit_parameters(info, step.params))

    def versions(self) -> dict[str, int]:
        """Return keyword → the newest revision that passed its trial here, except those that failed since."""
        proven = {}
        for keyword, upload in self._registered().items():
            for revision in (upload.current, *upload.revisions):
                if self._is_proven(upload.at(revision)):
                    if not self.refusals.reason(revision.sha256):
                        proven[keyword] = revision.number
                    break
        return proven

    def refused(self) -> dict[str, str]:
        """Return digest of the newest revision of each filter that failed here → the reason."""
        newest = {one.sha256: self.refusals.reason(one.sha256) for one in self._registered().values()}
        return {sha256: reason for sha256, reason in newest.items() if reason}

    def code(self, sha256: str) -> bytes:
        """
        :raises SluiceError: when it is missing, or not the registered code
        """
        return self.store.read(sha256)

    def _is_proven(self, one: Upload) -> bool:
        return bool(one.sha256) and self.store.is_proven(one.sha256, one.kind, one.main)

    def _registered(self) -> dict[str, Upload]:
        return {
            one.keyword: one
            for one in self.uploads()
            if one.kind == FILTER_CODE and one.environment == NBDKIT and one.keyword not in FILTERS
        }


def nbdkit_parameters(info: ActionInfo, given: Mapping[str, Scalar]) -> tuple[str, ...]:
    """Return ``key=value`` of each parameter that is given or has a default.

    :raises CallerError: for a parameter that is unknown, missing, or out of its range
    """
    known = {one.name: one for one in info.parameters}
    for name in given:
        if name not in known:
            near = difflib.get_close_matches(name, known, 1)
            hint = f", did you mean `{near[0]}`" if near else ""
            raise CallerError(f"filter `{info.keyword}` has no parameter `{name}`{hint}")
    values = {one.name: given.get(one.name, one.default) for one in info.parameters}
    for name, value in values.items():
        if value is None and known[name].required:
            raise CallerError(f"parameter `{name}` of filter `{info.keyword}` is missing")
    said = {name: _checked(info.keyword, known[name], value) for name, value in values.items() if value is not None}
    return tuple(f"{name}={_text(value)}" for name, value in said.items())


def _checked(keyword: str, parameter: Parameter, value: Scalar) -> Scalar:
    fits = isinstance(value, _PYTHON_TYPES[parameter.type]) and (
        parameter.type == "bool" or not isinstance(value, bool)
    )
    if fits and not isinstance(value, str | bool):
        least, greatest = parameter.minimum, parameter.maximum
        fits = (least is None or value >= least) and (greatest is None or value <= greatest)
    if not fits or (parameter.choices and value not in parameter.choices):
        expected = ", ".join(map(str, parameter.choices)) or _range(parameter)
        raise CallerError(f"parameter `{parameter.name}` of filter `{keyword}` is `{value}`, expected {expected}")
    return value


def _range(parameter: Parameter) -> str:
    least = "" if parameter.minimum is None else f" from {parameter.minimum:g}"
    greatest = "" if parameter.maximum is None else f" to {parameter.maximum:g}"
    return f"{parameter.type}{least}{greatest}"


def _text(value: Scalar) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
