"""The common types of the environments and their guard: steps, sessions, limits and the two faults."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Protocol

from sluice_core.describe import Scalar
from sluice_filters.api import FilterError

#: The two directions of a step: a filter's transformation on PUT or at reading time, and its reversal.
DO: Final = "do"
UNDO: Final = "undo"


class SandboxFault(FilterError):
    """Isolated code crashed, stalled, exceeded its limits or broke its declaration; only its own request fails.

    The message names the filter and the fault, never data of the stream.
    """


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of isolated code; an environment logs at start which of them it cannot enforce.

    ``memory`` is bytes per worker or instance.  ``patience`` is the number of seconds for which code may compute
    without a result, ``cpu`` and ``cpu_per_mb`` the total processor time of a stream.  The output of a stream is at
    most ``slack`` bytes plus ``growth`` times its input.  ``workers`` serve one tenant at most, each with ``processes``
    processes and threads; ``tenants`` have workers at once.  A worker ends after ``idle`` seconds without work.
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
        """The greatest output, in bytes, of a stream with an input of ``taken`` bytes."""
        return self.slack + int(self.growth * taken)

    def seconds(self, taken: int) -> float:
        """The greatest processor time of a stream with an input of ``taken`` bytes."""
        return self.cpu + self.cpu_per_mb * taken / 1e6


@dataclass(frozen=True, slots=True)
class Step:
    """One filter in one direction; ``code`` is the SHA-256 of its code, ``main`` its entry point.

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

    Every method raises :class:`SandboxFault` when the code does not do its part.  An unfinished session may be dropped
    at any time: its resources are then released.
    """

    def feed(self, data: bytes) -> bytes:
        """Pass ``data`` (never empty) in; return the output that is ready, waiting only for space for ``data``."""

    def finish(self) -> bytes:
        """Pass the end in; return the rest of the output, verified to be complete."""

    def counts(self) -> Sequence[tuple[int, int]]:
        """After ``finish``: input and output of each step in bytes, as the sandbox reports them."""
