"""What is kept of a started sandbox, so that another konnector finds it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from sluice_block.konnector.datapath.process_records import ProcessRecord
from sluice_core.messages.base import Message


@dataclass(frozen=True, slots=True)
class StageRecord(Message):
    """A started sandbox, and the revision in it.

    ``outer`` is bubblewrap's pid.  ``wanted`` says that it is to run, so that its end is a fault; ``why`` is what the
    watchdog found.  ``fault`` is when the last fault was, unix seconds, 0 for none.
    """

    process: ProcessRecord
    outer: int
    keyword: str
    revision: int
    sha256: str
    arguments: tuple[str, ...] = ()
    wanted: bool = True
    why: str = ""
    fault: float = 0.0

    nested: ClassVar[Mapping[str, type[Message]]] = {"process": ProcessRecord}

    def failure(self, why: str) -> str:
        """What to say of a fault."""
        return f"revision {self.revision} of filter `{self.keyword}` failed: {why}"
