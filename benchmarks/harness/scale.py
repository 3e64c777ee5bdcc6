"""How much is measured: a full run for the record, a quick one to see that the harness works."""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Scale:
    """Repetitions of every part; ``folder`` is where clusters live, ``quick`` says which sort of run it is.

    Pictures go to ``pictures``, if any are wanted.
    """

    folder: Path
    quick: bool = False
    pictures: Path | None = None

    def pick(self, full: int, quick: int) -> int:
        """One of two numbers."""
        return quick if self.quick else full


def say(line: str) -> None:
    """Progress, for whoever waits."""
    print(f"{time.strftime('%H:%M:%S')}  {line}", file=sys.stderr, flush=True)
