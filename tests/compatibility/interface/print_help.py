"""Prints the ``--help`` of a program and of its commands as JSON, without running it: ``… MODULE:FUNCTION``."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from importlib import import_module
from typing import Any, NoReturn


class _Asked(BaseException):
    """Raised when a program is about to parse its arguments."""

    def __init__(self, parser: argparse.ArgumentParser) -> None:
        self.parser = parser


def _parse(self: argparse.ArgumentParser, *args: Any, **kwargs: Any) -> NoReturn:
    raise _Asked(self)


def _helps(words: str, parser: argparse.ArgumentParser) -> Iterator[tuple[str, str]]:
    yield words, parser.format_help()
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for word, inner in action.choices.items():
                yield from _helps(f"{words} {word}".strip(), inner)


def main(place: str) -> None:
    module, _, function = place.partition(":")
    sys.argv = ["program", "--help"]
    found = getattr(import_module(module), function)
    argparse.ArgumentParser.parse_args = argparse.ArgumentParser.parse_known_args = _parse
    try:
        found()
    except _Asked as asked:
        asked.parser.prog = "program"
        print(json.dumps(dict(_helps("", asked.parser))))
    else:
        sys.exit(f"`{place}` ended without parsing its arguments")


if __name__ == "__main__":
    main(sys.argv[1])
