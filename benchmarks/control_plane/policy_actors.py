"""50,000 policy actors in one host, by ``actors.py`` in a separate process, whose memory is counted."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Final

from benchmarks.harness.figures import Figure, at_most
from benchmarks.harness.scale import Scale, say

from sluice_core.errors import PeerError

CPU_LIMIT: Final = 30.0
KIB_LIMIT: Final = 8.0
ACTORS: Final = 50_000


def measure(scale: Scale) -> list[Figure]:
    """CPU per second and memory per actor: with no actor crossing its threshold, and with one in twenty."""
    return [figure for moving in (0.0, 0.05) for figure in _figures(_run(scale, moving))]


def _run(scale: Scale, moving: float) -> dict[str, float]:
    """One run, in a fresh process.

    :raises PeerError: if it fails
    """
    say(f"actors: {ACTORS} policy actors, {moving:.0%} cross their threshold each second")
    file = scale.folder / "actors.json"
    program = Path(__file__).with_name("actors.py")
    options = {"--actors": ACTORS, "--ticks": scale.pick(20, 3), "--moving": moving, "--json": file}
    words = [str(word) for pair in options.items() for word in pair]
    done = subprocess.run([sys.executable, str(program), *words], capture_output=True, text=True, check=False)
    if done.returncode:
        raise PeerError(f"`{program.name}` ended with status {done.returncode}: {done.stderr[-500:]}")
    (one,) = json.loads(file.read_text(encoding="utf-8"))["actors"]
    return dict(one)


def _figures(one: dict[str, float]) -> list[Figure]:
    moving = f"{one['moving']:.0%} cross their threshold each second"
    what = f"{one['actors']:.0f} policy actors, a new value each second, {moving}"
    cpu, worst = one["cpu_median"] * 100, one["cpu_worst"] * 100
    beside = f"worst second {worst:.1f} %, the loop held for at most {one['longest_slice'] * 1000:.0f} ms"
    return [
        at_most("actors CPU", f"{what}: share of one core", cpu, CPU_LIMIT, "%", beside, digits=1, **one),
        at_most("actors memory", f"{what}: each", one["bytes_per_actor"] / 1024, KIB_LIMIT, "KiB", digits=2),
    ]
