"""The state of each storlet of a run: the task, its descriptors, and its daemon's reports on the status pipe."""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

JAVA: Final = "java"
_JAVA_START: Final = b"About to invoke storlet\n"
_JAVA_END: Final = b"Storlet invocation done\n"
_PYTHON_START: Final = b"S"
_STATUS_LIMIT: Final = 64 * 1024


@dataclass(frozen=True, slots=True)
class StorletTask:
    """One storlet of a run: the daemon that runs it, and the parameters as strings."""

    keyword: str
    name: str
    main: str
    language: str
    classpath: str
    params: Mapping[str, str]


@dataclass(slots=True)
class Stage:
    """A task in progress; descriptors are the host's, -1 when closed."""

    task: StorletTask
    reader: int
    output: int
    status: int = -1
    id: str = field(default_factory=lambda: uuid.uuid4().hex[:12])
    heard: bytes = b""
    started: bool = False
    attempts: int = 0
    end: dict[str, Any] | None = None

    def read_status(self, data: bytes) -> bool:
        """Read the status pipe; return True when it reports that the run began just now."""
        self.heard = (self.heard + data)[-_STATUS_LIMIT:]
        mark = _JAVA_START if self.task.language == JAVA else _PYTHON_START
        if self.started or not self.heard.startswith(mark):
            return False
        self.started = True
        self.heard = self.heard[len(mark) :]
        return True

    def close(self) -> dict[str, Any]:
        """Return the result at the end of the status pipe: ``ok``, ``why`` and the counts."""
        self.end = _java_end(self.heard) if self.task.language == JAVA else _python_end(self.heard)
        return self.end


def _python_end(heard: bytes) -> dict[str, Any]:
    _, mark, text = heard.rpartition(b"\0")
    try:
        end = json.loads(text) if mark else {}
    except (ValueError, RecursionError):
        end = {}
    return end if isinstance(end, dict) and "ok" in end else {"ok": False, "why": "it was killed"}


def _java_end(heard: bytes) -> dict[str, Any]:
    """Storlets' own Java daemon writes its last line only when a storlet returned."""
    return {"ok": heard.endswith(_JAVA_END), "why": "it threw an exception or was killed"}


def reconcile_counts(given: int | None, taken: int | None) -> tuple[int, int]:
    """Return the counts of two neighbours for the pipe between them; an unknown count equals the other."""
    left = taken if given is None else given
    right = given if taken is None else taken
    return (0 if left is None else left, 0 if right is None else right)


def printable(why: object) -> str:
    """Return a reason from a container in a form for messages: short and in one line."""
    text = "".join(char if char.isprintable() and char != "`" else "?" for char in str(why))
    return text[:100]
