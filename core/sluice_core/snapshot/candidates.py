"""Prepared answers of a reader: one for all objects, or volumes, to which the same records apply.

A record in the snapshot may hold assignments for objects and for volumes, mainly that of a tenant.  A prepared answer
is for objects or for volumes: assignments for the other are removed once, when the answer is made, so requests for
objects do not pay for assignments of volumes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final

from sluice_core.errors import DecodeError
from sluice_core.messages.policies import Assignment
from sluice_core.messages.predicate import compile_predicate
from sluice_core.resolve import Candidates
from sluice_core.snapshot.records import STAMP, decode_record, referenced_group

NOTHING: Final = Candidates(())
MOST: Final = 10_000
Stamps = tuple[bytes | None, ...]
Get = Callable[[bytes], memoryview | None]
#: Called with the fault of a record, and its stamp.
Complain = Callable[[str, int], None]


class CandidateCache:
    """Candidates by the stamps of the records that were read for them.

    :param about: OBJECTS or VOLUMES
    """

    def __init__(self, about: str, complain: Complain) -> None:
        self._about = about
        self._complain = complain
        #: Always the same dictionary, so that a reader may keep a reference to it.
        self.by_stamps: dict[Stamps, Candidates] = {}
        self._prepared: dict[Stamps, Candidates] = {}
        self._older: dict[Stamps, Candidates] = {}

    def prepare(self, stamps: Stamps, raw: Iterable[memoryview | None], get: Get) -> Candidates:
        """Return the candidates of the records; objects with equal assignments (of a group) share one answer."""
        if len(self.by_stamps) >= MOST:
            self.by_stamps.clear()
            self._older, self._prepared = self._prepared, {}  # an answer in use remains the same object
        sources = self._sources(raw, get)
        same = tuple(bytes(one[:STAMP]) for one in sources)
        candidates = self._prepared.get(same) or self._older.get(same)
        if candidates is None:
            usable = [one for record in sources for one in self._usable(record)]
            candidates = Candidates(usable) if usable else NOTHING
        self.by_stamps[stamps] = self._prepared[same] = candidates
        return candidates

    def clear(self) -> None:
        """Forget all answers."""
        self.by_stamps.clear()
        self._prepared.clear()
        self._older.clear()

    def _sources(self, raw: Iterable[memoryview | None], get: Get) -> list[memoryview]:
        """The records with assignments, and those of the groups that they refer to."""
        sources: list[memoryview] = []
        for record in raw:
            if record is not None:
                groups = [referenced_group(data) for data in self._decoded(record)]
                if None in groups:
                    sources.append(record)
                present = (get(key) for key in groups if key is not None)
                sources.extend(one for one in present if one is not None)
        return sources

    def _usable(self, record: memoryview) -> Iterable[Assignment]:
        """Yield the applicable assignments of a record, without unreadable ones of a newer agent."""
        for data in self._decoded(record):
            if referenced_group(data) is None:
                try:
                    assignment = Assignment.from_data(data)
                    compile_predicate(assignment.when)
                except DecodeError as error:
                    self._complain(f"assignment `{data.get('id')}`: {error}", int.from_bytes(record[:STAMP], "big"))
                else:
                    if assignment.concerns(self._about):
                        yield assignment

    def _decoded(self, record: memoryview) -> list[dict[str, Any]]:
        try:
            return decode_record(record)
        except DecodeError as error:
            self._complain(str(error), int.from_bytes(record[:STAMP], "big"))
            return []
