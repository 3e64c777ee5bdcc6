"""Checks of isolated code from outside: no report of the code is trusted.

The hosts see these streams.  They count and sum (CRC-32) every byte on both sides of the sandbox, so

* an end is an end only when the sandbox counted the same bytes as the host did;
* output may not outgrow input by more than the limits say (a bomb stops early);
* a filter that declared to change nothing is checked for that;
* stored data carries its length and sum: damage on disk is distinguished from faults of the code, and *undo* returns
  the object that was put in, or an error.

Records, one per filter: ``size`` and ``stored`` are its bytes before and after, ``code``, ``main`` and
``params`` describe the run.  The first filter of a sandbox entry adds ``plain``, the last one ``sum``, the sums of the
input and output of the sandbox.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Self

from isal import isal_zlib

from sluice_core.describe import Scalar
from sluice_filters.api import CorruptData, GroupEncoder, Record, Stream
from sluice_filters.stream import record_number
from sluice_sandbox.isolated import IsolatedFilter
from sluice_sandbox.limits import Limits, SandboxFault, Session

_SIZE_LIMIT: Final = 1 << 63


class _ByteCount:
    """Length and sum of the bytes at one point."""

    __slots__ = ("size", "sum")

    def __init__(self) -> None:
        self.size = 0
        self.sum = 0

    def add(self, data: bytes) -> None:
        self.size += len(data)
        self.sum = isal_zlib.crc32(data, self.sum)


class _Guarded:
    """Bytes through a session, counted on both sides."""

    def __init__(self, session: Session, keywords: Sequence[str], limits: Limits) -> None:
        self.names = " and ".join(f"`{one}`" for one in keywords)
        self._steps = len(keywords)
        self.taken = _ByteCount()
        self.given = _ByteCount()
        self._session: Session | None = session
        self._limits = limits
        self.rest = b""
        self._held = b""

    def feed(self, data: bytes) -> bytes:
        """Return the output before the newest: a reader who knows the length must not receive all bytes before the end
        is verified.
        """
        self.taken.add(data)
        out = self._pass(self._open().feed(data))
        if not out:
            return b""
        held, self._held = self._held, out
        return held

    def finish(self) -> Sequence[tuple[int, int]]:
        """Return the counts of each step; the rest of the output is in ``rest``."""
        session = self._open()
        last = self._pass(session.finish())
        self.rest = self._held + last
        counts = session.counts()
        self._session = None
        if len(counts) != self._steps or not all(0 <= one < _SIZE_LIMIT for pair in counts for one in pair):
            raise SandboxFault(f"filter {self.names} ended with counts that cannot be")
        ins = [self.taken.size, *(given for _, given in counts)]
        outs = [*(taken for taken, _ in counts), self.given.size]
        if ins != outs:
            raise SandboxFault(f"filter {self.names} ended after {outs} bytes of {ins}")
        return counts

    def _open(self) -> Session:
        if self._session is None:
            raise SandboxFault(f"filter {self.names} is finished")
        return self._session

    def _pass(self, data: bytes) -> bytes:
        if data:
            self.given.add(data)
            if self.given.size > self._limits.output(self.taken.size):
                self._session = None
                raise SandboxFault(
                    f"filter {self.names} made {self.given.size} bytes out of {self.taken.size}, "
                    f"expected at most {self._limits.output(self.taken.size)}"
                )
        return data


class GuardedEncoder(GroupEncoder):
    """The filters of one entry, on PUT or when read."""

    def __init__(self, session: Session, steps: Sequence[IsolatedFilter], limits: Limits) -> None:
        self._steps = tuple(steps)
        self._through = _Guarded(session, [one.info.keyword for one in steps], limits)
        self._counts: Sequence[tuple[int, int]] = ()

    def feed(self, data: bytes) -> bytes:
        return self._through.feed(data)

    def finish(self) -> bytes:
        through = self._through
        self._counts = through.finish()
        changes = any(one.info.changes_content for one in self._steps)
        if not changes and (through.taken.size, through.taken.sum) != (through.given.size, through.given.sum):
            raise SandboxFault(f"filter {through.names} declared to change nothing, and did")
        return through.rest

    def records(self) -> Sequence[Record | None]:
        if not self._through.taken.size and not self._through.given.size:
            # an empty output of an empty input has nothing to undo
            return [None] * len(self._steps)
        marks: list[dict[str, Any] | None] = []
        for one, (taken, given) in zip(self._steps, self._counts, strict=True):
            about = {"code": one.upload.sha256, "main": one.upload.main, "params": one.given_parameters()}
            marks.append({"size": taken, "stored": given, **about} if one.info.reversible else None)
        if marks and marks[0] is not None:
            marks[0]["plain"] = self._through.taken.sum
        if marks and marks[-1] is not None:
            marks[-1]["sum"] = self._through.given.sum
        return marks

    def record(self) -> Record | None:
        return self.records()[0]


@dataclass(frozen=True, slots=True)
class StepRecord:
    """A record, checked."""

    size: int
    stored: int
    code: str
    main: str
    params: Mapping[str, Scalar]
    plain: int | None = None
    sum: int | None = None

    @classmethod
    def parse(cls, record: Record) -> Self:
        """
        :raises CorruptData: when a :class:`GuardedEncoder` did not write it
        """
        sums = [name for name in ("plain", "sum") if name in record]
        numbers = {
            name: record_number(record, name, 0, _SIZE_LIMIT - 1, "uploaded filter")
            for name in ("size", "stored", *sums)
        }
        code, main, params = record.get("code"), record.get("main"), record.get("params")
        if not (isinstance(code, str) and len(code) == 64 and isinstance(main, str) and isinstance(params, Mapping)):
            raise CorruptData("not the record of an uploaded filter")
        if not all(isinstance(value, str | int | float | bool) for value in params.values()):
            raise CorruptData("not the parameters of an uploaded filter")
        return cls(code=code, main=main, params=dict(params), **numbers)


class GuardedDecoder(Stream):
    """Reverses the filters of one entry; ``marks`` are in running order on PUT.

    Code that fails in the middle may have received damaged bytes.  So its failure is kept until all bytes were read,
    without output: damage is reported as damage, which hosts repair, and only else as a fault of the code.
    """

    def __init__(self, session: Session, marks: Sequence[StepRecord], keywords: Sequence[str], limits: Limits) -> None:
        self._first, self._last = marks[0], marks[-1]
        self._through = _Guarded(session, keywords, _for_undoing(limits, self._first.size))
        self._failure: SandboxFault | None = None

    def feed(self, data: bytes) -> bytes:
        through = self._through
        if through.taken.size + len(data) > self._last.stored:
            raise CorruptData(f"more than the {self._last.stored} bytes that were stored")
        if self._failure is not None:
            through.taken.add(data)
            return b""
        try:
            out = through.feed(data)
            if through.given.size > self._first.size:
                raise SandboxFault(f"filter {through.names} undid more than the {self._first.size} bytes it took")
        except SandboxFault as error:
            self._failure = error
            return b""
        return out

    def finish(self) -> bytes:
        through = self._through
        if through.taken.size != self._last.stored or self._last.sum not in (None, through.taken.sum):
            raise CorruptData(f"stored bytes of filter {through.names} are damaged")
        if self._failure is not None:
            raise self._failure
        through.finish()
        if through.given.size != self._first.size or self._first.plain not in (None, through.given.sum):
            raise SandboxFault(f"filter {through.names} did not give back what it took")
        return through.rest


def _for_undoing(limits: Limits, size: int) -> Limits:
    """Limits for *undo*, whose output has a known size, so no other limit on growth is needed."""
    return replace(limits, slack=max(limits.slack, size + 1))
