"""Measures everything in the issue's table, prints one table and writes JSON.

    python -m benchmarks [--only NAME] [--quick] [--json FILE]
    python -m benchmarks --paint [--json FILE]
Parts run one after the other; a part that fails is reported and does not stop the others.  In the file
their rows replace those of earlier runs; rows of other parts stay, with the machine that they were measured on.
their rows replace what earlier runs found; rows of other parts stay, with the machine that they were measured on.
"""

from __future__ import annotations

import argparse
import contextlib
import logging
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from benchmarks.bandwidth import division, io_streams
from benchmarks.bandwidth import objectives as bandwidth
from benchmarks.control_plane import (
    api,
    failover,
    metric_history,
    policy_actors,
    reaction,
    rewrites,
    rollout,
    soak,
    two_hosts,
)
from benchmarks.filters import caching, compression, csv_link, encryption, isolated, pipelines, storlets
from benchmarks.harness.figures import Figure, Partly, table
from benchmarks.harness.machine import machine_facts
from benchmarks.harness.results import Results
from benchmarks.harness.scale import Scale, say
from benchmarks.harness.trio import Trio
from benchmarks.motifs import costs as motif_costs
from benchmarks.motifs import file_system as motif_file_system
from benchmarks.motifs import graph as motif_graph
from benchmarks.motifs import mount_trace as motif_mount_trace
from benchmarks.motifs import reads as motif_reads
from benchmarks.motifs import replacement as motif_replacement
from benchmarks.motifs import runtime as motif_runtime
from benchmarks.motifs import trace_replay as motif_trace
from benchmarks.paint import paint_courses, paint_figures
from benchmarks.requests import lookup, matched, overhead, whole_nodes
from benchmarks.volumes import parts as volume_parts

from sluice_client import ClientError
from sluice_core.errors import SluiceError

RESULTS: Final = Path(__file__).with_name("results.json")

#: In this process, hence first: the heap after other parts makes it slower by a fifth.
FIRST: Final[dict[str, Callable[[Scale], list[Figure]]]] = {"lookup": lookup.measure}
#: Parts that share three proxies over one storage.
PAIRED: Final[dict[str, Callable[[Trio, Scale], list[Figure]]]] = {
    "overhead": overhead.measure,
    "matched": matched.measure,
    "compression": compression.measure,
    "pipelines": pipelines.measure,
}
#: Parts with clusters of their own.
ALONE: Final[dict[str, Callable[[Scale], list[Figure]]]] = {
    "actors": policy_actors.measure,
    "rollout": rollout.measure,
    "reaction": reaction.measure,
    "encryption": encryption.measure,
    "caching": caching.measure,
    "isolated": isolated.measure,
    "storlets": storlets.measure,
    "csv_link": csv_link.measure,
    "api": api.measure,
    "metric_history": metric_history.measure,
    "rewrites": rewrites.measure,
    "motif_replacement": motif_replacement.measure,
    "motif_runtime": motif_runtime.measure,
    "motif_graph": motif_graph.measure,
    "motif_reads": motif_reads.measure,
    "motif_trace": motif_trace.measure,
    "motif_mount_trace": motif_mount_trace.measure,
    "motif_file_system": motif_file_system.measure,
    **volume_parts.PARTS,
}
#: Measured only on request, because they take long: the soak half an hour.
LONG: Final[dict[str, Callable[[Scale], list[Figure]]]] = {
    "failover": failover.measure,
    "two_hosts": two_hosts.measure,
    "soak": soak.measure,
    "division": division.measure,
    "bandwidth": bandwidth.figures,
    "io_streams": io_streams.measure,
    "whole_nodes": whole_nodes.measure,
    "motif_costs": motif_costs.measure,
}
PARTS: Final = (*FIRST, *PAIRED, *ALONE)


def arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="Measure Sluice beside plain Swift.")
    names = (*PARTS, *LONG)
    only = f"one of {', '.join(PARTS)}, or {', '.join(LONG)} (these are long, and never measured without being named)"
    parser.add_argument("--only", action="append", choices=names, metavar="NAME", help=only)
    parser.add_argument("--quick", action="store_true", help="few repetitions: does the harness work (10 minutes)")
    parser.add_argument(
        "--json", type=Path, metavar="FILE", help=f"results (default: {RESULTS.name}; none with --quick)"
    )
    parser.add_argument("--folder", type=Path, help="where clusters live while they are measured (default: temporary)")
    parser.add_argument(
        "--paint", action="store_true", help="paint the pictures of the results in FILE anew; measure nothing"
    )
    return parser.parse_args(argv)


def main(argv: Sequence[str] | None = None) -> int:
    """Return 0 if every part ran, whatever it measured; 1 if one failed."""
    given = arguments(argv)
    if given.paint:
        stored = given.json or RESULTS
        painted = paint_figures(_pictures(stored), Results.load(stored).figures)
        print(f"painted {', '.join([*painted, *paint_courses(_pictures(stored))])}")
        return 0
    file = given.json or (None if given.quick else RESULTS)
    for number in (signal.SIGTERM, signal.SIGHUP):  # end like Ctrl-C: stop all started processes
        signal.signal(number, lambda *_: sys.exit(1))
    logging.getLogger("pika").setLevel(logging.CRITICAL)  # it reports each step of each connection attempt
    begin = time.monotonic()
    with _folder(given.folder) as folder:
        facts = machine_facts(folder)
        figures, failed = measure(Scale(folder, given.quick, file and _pictures(file)), given.only or PARTS)
    print(table(figures))
    for name, reason in failed.items():
        print(f"FAILED {name}: {reason}")
    if file is not None:
        facts |= {"seconds": round(time.monotonic() - begin), **({"quick": True} if given.quick else {})}
        found = Results.of_run(facts, figures, failed)
        Results.load(file).merged(found, given.only or PARTS).save(file)
        paint_figures(_pictures(file), found.figures)
        print(f"written to {file}")
    return 1 if failed else 0


def measure(scale: Scale, names: Collection[str]) -> tuple[list[Figure], dict[str, str]]:
    """The figures of the parts called ``names``, and the reasons of missing ones."""
    figures: list[Figure] = []
    failed: dict[str, str] = {}

    def attempt(name: str, part: Callable[..., list[Figure]], *given: Any) -> None:
        say(f"== {name}")
        try:
            found = part(*given)
        except Partly as error:
            failed[name] = str(error)
            say(f"failed: {error}")
            found = list(error.figures)
        except (SluiceError, ClientError, OSError) as error:
            failed[name] = str(error)
            say(f"failed: {error}")
            return
        figures.extend(replace(one, part=name) for one in found)
        print(table(found), file=sys.stderr, flush=True)

    for name, part in FIRST.items():
        if name in names:
            attempt(name, part, scale)
    paired = [name for name in PAIRED if name in names]
    if paired:
        try:
            with Trio(scale.folder / "trio") as trio:
                overhead.prepare(trio)
                for name in paired:
                    attempt(name, PAIRED[name], trio, scale)
        except SluiceError as error:
            failed |= {name: str(error) for name in paired if name not in failed}
            say(f"failed: {error}")
        shutil.rmtree(scale.folder / "trio", ignore_errors=True)
    for name, part in (*ALONE.items(), *LONG.items()):
        if name in names:
            attempt(name, part, scale)
    return figures, failed


def _pictures(file: Path) -> Path:
    """The folder for pictures, beside the file of results."""
    return file.with_name("pictures")


@contextlib.contextmanager
def _folder(given: Path | None) -> Iterator[Path]:
    """A short temporary folder (unix sockets are in it), removed afterwards."""
    if given is not None:
        given.mkdir(parents=True, exist_ok=True)
    path = Path(tempfile.mkdtemp(prefix="sb-", dir=given))
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
