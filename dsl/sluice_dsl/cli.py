"""``sluice-dsl``: check sentences and explain them, without a cluster."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from sluice_core.errors import CallerError
from sluice_core.process.command_line import add_version
from sluice_dsl.bandwidth_doubts import check_bandwidth
from sluice_dsl.catalogue.offline import load_catalogue, offline_catalogue
from sluice_dsl.compile import PolicyErrors, compile_text
from sluice_dsl.explain import explain


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="sluice-dsl", description="Check and explain the sentences of Sluice.")
    add_version(parser)
    parser.add_argument(
        "--catalogue",
        metavar="FILE.json",
        help="what sentences may name (actions, metrics, terms, aliases, groups, tenants, default_tenant, levels, "
        "erasure_coded, volumes); "
        "by default the project's own words, as on a cluster that runs all its services",
    )
    commands = parser.add_subparsers(dest="command", required=True)
    check = commands.add_parser("check", help="print the errors of a file's sentences")
    check.add_argument("source", metavar="FILE", help="file of sentences, or - for standard input")
    tell = commands.add_parser("explain", help="say in plain words what sentences will do")
    tell.add_argument("source", metavar="FILE|TEXT", help="file of sentences, - for standard input, or a sentence")
    return parser


def _read(source: str, text_allowed: bool) -> str:
    if source == "-":
        return sys.stdin.read()
    # a sentence has a blank and begins with FOR; a file of that name can be given as ./FOR…
    if text_allowed and source.lstrip()[:4].upper() == "FOR ":
        return source
    try:
        return Path(source).read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        raise CallerError(f"cannot read `{source}`: {error}") from error


def main(argv: Sequence[str] | None = None) -> int:
    """Entry point; returns the exit status: 0 no errors, 1 a refused sentence, 2 failure."""
    options = _parser().parse_args(argv)
    try:
        catalogue = load_catalogue(options.catalogue) if options.catalogue else offline_catalogue()
        text = _read(options.source, text_allowed=options.command == "explain")
        compiled = check_bandwidth(text, compile_text(text, catalogue))
    except PolicyErrors as refused:
        for problem in (*refused.problems, *refused.warnings):
            print(problem, file=sys.stderr)
        return 1
    except CallerError as error:
        print(f"sluice-dsl: {error}", file=sys.stderr)
        return 2
    for one in compiled:
        for warning in one.warnings:
            print(warning, file=sys.stderr)
    if options.command == "check":
        print(f"{len(compiled)} sentence{'s' if len(compiled) != 1 else ''}, no errors")
    else:
        print("\n\n".join(explain(one, catalogue) for one in compiled))
    return 0
