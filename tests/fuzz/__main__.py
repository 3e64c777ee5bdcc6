"""Fuzz the decoders and the language, guided by coverage: ``python -m tests.fuzz [--seconds N] [target …]``.

Each target runs in a child of its own, since libFuzzer never returns control of a process, and code is instrumented as
it is imported.  A child ends with an error for any exception, for one input that takes too long, and when its memory
grows beyond its limit; the input that caused it is kept in the folder of findings.  Needs ``atheris``.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

#: The instrumented code: Sluice's packages, and the parser library of sentences.
GUIDED = [
    "sluice_core",
    "sluice_dsl",
    "sluice_actors",
    "sluice_sandbox",
    "sluice_middleware",
    "sluice_objects",
    "pyparsing",
]
#: The memory limit of a child in megabytes; the imports of a target take about 200.
MEMORY = 1024
#: Seconds for one input.
PATIENCE = 10
_RSS = re.compile(r"#(\d+)\s.*? rss: (\d+)Mb")


@dataclass(frozen=True)
class Outcome:
    """The output of a child: inputs tried, memory in megabytes at half-time and at the end, and its status."""

    target: str
    runs: int
    memory: tuple[int, int]
    status: int
    tail: str

    def __str__(self) -> str:
        verdict = "nothing found" if self.status == 0 else f"FOUND SOMETHING\n{self.tail}"
        return f"{self.target:12} {self.runs:9} inputs, {self.memory[0]} to {self.memory[1]} MB, {verdict}"


def run_child(target: str, seeds: Sequence[bytes], seconds: int, seed: int, findings: Path) -> Outcome:
    """Fuzz one target for some time."""
    with tempfile.TemporaryDirectory(prefix="sluice-fuzz-") as folder:
        for number, one in enumerate(seeds):
            (Path(folder) / f"seed-{number}").write_bytes(one)
        options = {
            "max_total_time": seconds,
            "timeout": PATIENCE,
            "rss_limit_mb": MEMORY,
            "max_len": 4096,
            "seed": seed,
            "artifact_prefix": f"{findings}/{target}-",
            "print_final_stats": 1,
        }
        command = [sys.executable, str(HERE / "__main__.py"), "--child", target]
        command += [f"-{name}={value}" for name, value in options.items()]
        done = subprocess.run([*command, folder], capture_output=True, text=True, errors="replace", check=False)
    told = [(int(runs), int(memory)) for runs, memory in _RSS.findall(done.stderr)]
    runs = told[-1][0] if told else 0
    memory = (told[len(told) // 2][1], told[-1][1]) if told else (0, 0)
    return Outcome(target, runs, memory, done.returncode, done.stderr[-4000:])


def be_child(target: str, options: list[str]) -> None:
    """Never returns."""
    import atheris

    with atheris.instrument_imports(include=GUIDED):
        import fuzz_targets

    atheris.Setup([sys.argv[0], *options], fuzz_targets.TARGETS[target].feed)
    atheris.Fuzz()


def main() -> int:
    """Return 0 without findings."""
    if sys.argv[1:2] == ["--child"]:
        be_child(sys.argv[2], sys.argv[3:])
    import fuzz_targets

    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description="fuzz decoders and the language")
    parser.add_argument("--seconds", type=int, default=60, help="for each target (60)")
    parser.add_argument("--seed", type=int, default=1, help="of chance (1)")
    parser.add_argument("--findings", type=Path, default=Path(".fuzz"), help="where inputs are kept (.fuzz)")
    parser.add_argument("target", nargs="*", choices=[[], *fuzz_targets.TARGETS], help="all unless named")
    given = parser.parse_args()
    given.findings.mkdir(parents=True, exist_ok=True)
    failed = False
    for target in given.target or fuzz_targets.TARGETS:
        outcome = run_child(target, fuzz_targets.TARGETS[target].seeds, given.seconds, given.seed, given.findings)
        print(outcome, flush=True)
        failed = failed or outcome.status != 0
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
