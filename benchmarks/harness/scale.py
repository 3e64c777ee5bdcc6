"""The amount of measurement: a full run for the record, a quick one as a check of the harness."""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Scale:
    """Repetitions of every part; ``folder`` is the place of clusters, ``quick`` the kind of run.

    Pictures go to ``pictures``, if any are wanted.
    """

    folder: Path
    quick: bool = False
    pictures: Path | None = None

    def pick(self, full: int, quick: int) -> int:
        """One of two numbers."""
        return quick if self.quick else full


def say(line: str) -> None:
    """Print progress."""
    print(f"{time.strftime('%H:%M:%S')}  {line}", file=sys.stderr, flush=True)
