"""``python -m tests.support.swift_suite``: Swift's own functional suite, and whether its result is that of
plain Swift.

For each set-up a cluster is started, its policies are created through the API, and the suite runs through its
proxy.  Outcomes are compared test by test with those of the plain run in the results' folder; any
difference makes the exit status 1.  ``--record`` writes the outcomes of a whole run into that folder.
"""

from __future__ import annotations

import argparse
import hashlib
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Final

from tests.support.swift_suite import disks as swift_suite_disks
from tests.support.swift_suite import source as swift_suite_source
from tests.support.swift_suite.outcomes import Outcomes, differences
from tests.support.swift_suite.policies import say_policies, upload_filters
from tests.support.swift_suite.report import write_table
from tests.support.swift_suite.run import Suite
from tests.support.swift_suite.trials import TRIALS, Trial, trial_of

from sluice_aio import cli
from sluice_aio.base.layout import Layout
from sluice_aio.base.setup import ALL_PARTS
from sluice_aio.cluster import components
from sluice_aio.cluster.cluster import Cluster
from sluice_core.errors import SluiceError

RESULTS: Final = Path("tests/swift_suite")
CACHE: Final = Path.home() / ".cache" / "sluice"


def parser() -> argparse.ArgumentParser:
    """The command line."""
    top = argparse.ArgumentParser(prog="swift_suite", description=__doc__.split("\n", 1)[0] if __doc__ else None)
    what = top.add_mutually_exclusive_group(required=True)
    what.add_argument("--setup", choices=list(TRIALS), action="append", help="one set-up; may be given several times")
    what.add_argument("--all", action="store_true", help="all set-ups, whole and recorded, or a sample of each")
    top.add_argument("--select", default="", metavar="EXPR", help="only tests that pytest's -k would take")
    top.add_argument("--sample", type=int, metavar="N", help="only N tests, chosen by --seed")
    top.add_argument("--seed", type=int, help="default: the day, so that every day has other tests")
    top.add_argument("--record", action="store_true", help="keep the outcomes of a whole run, renew the table")
    top.add_argument("--disks", choices=[swift_suite_disks.XFS, swift_suite_disks.MEMORY], help="where the devices lie")
    top.add_argument("--results", type=Path, default=RESULTS, help=f"recorded outcomes (default {RESULTS})")
    top.add_argument("--cache", type=Path, default=CACHE, help="where Swift's source is kept (default ~/.cache/sluice)")
    top.add_argument("--logs", type=Path, help="keep the logs of cluster and suite in this folder")
    top.add_argument("--parts", help=f"only these parts of Sluice, of {','.join(sorted(ALL_PARTS))}")
    return top


def say(line: str) -> None:
    """One line of progress, with the time."""
    print(f"{time.strftime('%H:%M:%S')} {line}", flush=True)


def chosen(arguments: argparse.Namespace, trial: Trial) -> list[str] | None:
    """The sample's tests from the baseline, the same for each set-up; None for all."""
    if arguments.sample is None:
        return None
    known = sorted(Outcomes.load(arguments.results / f"{trial.baseline or trial.name}.json").tests)
    seed = date.today().toordinal() if arguments.seed is None else arguments.seed
    say(f"{trial.name}: {arguments.sample} of {len(known)} tests, seed {seed}")
    return sorted(known, key=lambda test: hashlib.sha256(f"{seed} {test}".encode()).digest())[: arguments.sample]


def run_trial(trial: Trial, arguments: argparse.Namespace, source: swift_suite_source.Source) -> Outcomes:
    """Start the set-up's cluster, run the suite, stop the cluster."""
    work = Path(tempfile.mkdtemp(prefix="suite-"))
    began = time.monotonic()
    try:
        with swift_suite_disks.disks(arguments.disks, work) as disks:
            setup = replace(trial.setup, fallocate=disks.fallocate)
            names = (components.DEFAULT if setup.parts else components.PLAIN_SWIFT) | trial.services
            with Cluster(replace(Layout.free(work / "aio"), disks=disks.folder), names, setup=setup) as cluster:
                upload_filters(cluster, trial.uploads)
                if trial.sentences:
                    say_policies(cluster, trial.sentences, trial.transforms)
                url = cluster.proxy_url if setup.parts else cluster.plain_url
                suite = Suite(source.root, work, url, lambda line: say(f"{trial.name}: {line}"))
                outcomes = suite.run(arguments.select, chosen(arguments, trial))
    finally:
        if arguments.logs:
            _keep_logs(work, arguments.logs / trial.name)
        shutil.rmtree(work)
    minutes = f"{(time.monotonic() - began) / 60:.1f}"
    about = {"swift": source.version, "sha256": source.sha256, "minutes": minutes, "day": str(date.today())}
    outcomes.about = {"title": trial.title, "sentences": "; ".join(trial.sentences), **about}
    return outcomes


def _keep_logs(work: Path, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for path in [*work.glob("*.log"), *work.glob("*.jsonl"), *work.glob("*.xml"), *(work / "aio" / "log").glob("*")]:
        shutil.copy(path, folder)


def judge(trial: Trial, outcomes: Outcomes, arguments: argparse.Namespace, whole: bool) -> bool:
    """Print the outcome and whether it equals that of plain Swift."""
    say(f"{trial.name}: {outcomes.summary()} in {outcomes.about['minutes']} minutes")
    for test in outcomes.failed:
        say(f"{trial.name}: failed {test}: {outcomes.why[test].strip().splitlines()[-1:]}")
    if trial.baseline is None:
        return not outcomes.failed
    plain = Outcomes.load(arguments.results / f"{trial.baseline}.json")
    found = differences(outcomes, plain, None if whole else outcomes.tests)
    for line in found:
        say(f"{trial.name}: differs: {line}")
    say(f"{trial.name}: {len(found)} differences from {trial.baseline}")
    return not found


def run(arguments: argparse.Namespace) -> int:
    """Run the requested set-ups; return 1 when any differs from plain Swift."""
    whole = not arguments.select and arguments.sample is None
    record = (arguments.record or arguments.all) and whole and arguments.parts is None
    source = swift_suite_source.fetch(arguments.cache)
    say(f"swift {source.version}, sha256 {source.sha256}")
    good = True
    # a sample is compared with the recorded baselines, and is no record of plain Swift
    every = [name for name, trial in TRIALS.items() if whole or trial.baseline]
    for name in every if arguments.all else arguments.setup:
        trial = trial_of(name)
        if arguments.parts is not None and trial.setup.parts:
            parts = frozenset(arguments.parts.split(",")) - {""}
            trial = replace(trial, setup=replace(trial.setup, parts=parts))
        outcomes = run_trial(trial, arguments, source)
        if record:
            outcomes.save(arguments.results / f"{name}.json")
            write_table(arguments.results)
        good = judge(trial, outcomes, arguments, whole) and good
    return 0 if good else 1


def main(argv: Sequence[str] | None = None) -> int:
    """Entry point; returns the exit status."""
    arguments = parser().parse_args(argv)
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, cli.interrupt)
    try:
        return run(arguments)
    except SluiceError as error:
        print(f"swift_suite: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("\ninterrupted, everything was stopped", file=sys.stderr)
        return cli.INTERRUPTED


if __name__ == "__main__":
    sys.exit(main())
