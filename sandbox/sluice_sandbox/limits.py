"""Words that the environments and their guard share: steps, sessions, limits and the two faults."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Protocol

from sluice_core.describe import Scalar
from sluice_filters.api import FilterError

#: The two directions of a step: what a filter does on PUT or at reading time, and what gives it back.
DO: Final = "do"
UNDO: Final = "undo"


class SandboxFault(FilterError):
    """Isolated code crashed, stalled, left its limits or broke its promises; only its own request suffers.

    The message names the filter and the fault, never data that went through it.
    """


@dataclass(frozen=True, slots=True)
class Limits:
    """What isolated code may use; whatever an environment cannot enforce it says in its log at start.

    ``memory`` is bytes per worker or instance.  ``patience`` is how many seconds code may compute without
    a result, ``cpu`` and ``cpu_per_mb`` how much processor time a stream may take in all.
    A stream may give ``slack`` bytes plus ``growth`` times what it took.  ``workers`` serve one tenant
    at most, each with ``processes`` processes and threads; ``tenants`` have workers at once.  A worker
    goes after ``idle`` seconds without work.
    """

    memory: int = 256 * 1024 * 1024
    patience: float = 10.0
    cpu: float = 5.0
    cpu_per_mb: float = 1.0
    growth: float = 20.0
    slack: int = 16 * 1024 * 1024
    workers: int = 2
    processes: int = 8
    tenants: int = 64
    idle: float = 300.0

    def output(self, taken: int) -> int:
        """How many bytes a stream may have given that took ``taken``."""
        return self.slack + int(self.growth * taken)

    def seconds(self, taken: int) -> float:
        """How much processor time a stream may have used that took ``taken`` bytes."""
        return self.cpu + self.cpu_per_mb * taken / 1e6


@dataclass(frozen=True, slots=True)
class Step:
    """One filter in one direction; ``code`` is the SHA-256 of what runs, ``main`` where it begins.

    ``language`` and ``dependencies`` (name → SHA-256) are those of the upload.
    """

    keyword: str
    code: str
    main: str
    params: Mapping[str, Scalar]
    direction: str = DO
    language: str = ""
    dependencies: Mapping[str, str] = field(default_factory=dict)


class Session(Protocol):
    """One stream through one or more steps in a sandbox.

    Every method raises :class:`SandboxFault` when the code does not do its part.  A session that is
    not finished may be dropped at any time: what belongs to it is then let go.
    """

    def feed(self, data: bytes) -> bytes:
        """Hand in ``data`` (never empty); whatever output is ready, without waiting for more than room."""

    def finish(self) -> bytes:
        """Hand in the end; the rest of the output, proven to be all of it."""

    def counts(self) -> Sequence[tuple[int, int]]:
        """After ``finish``: how many bytes each step took and gave, as the sandbox tells."""
