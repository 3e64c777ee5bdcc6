"""Arguments of commands: as a table, and those with the same meaning in every command."""

from __future__ import annotations

import json
import math
import sys
from argparse import Action, ArgumentError, ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import Any

from cliff import _argparse


@dataclass(frozen=True)
class Argument:
    """An argument of a command: its name or flags, its help, and further arguments for argparse."""

    flags: str
    help: str
    more: Mapping[str, Any] = field(default_factory=dict)

    @property
    def dest(self) -> str:
        """The attribute of the parsed command line."""
        return str(self.more.get("dest", self.flags.split()[0].lstrip("-").replace("-", "_")))

    @property
    def is_option(self) -> bool:
        """Whether it is named on the command line."""
        return self.flags.startswith("-")

    @property
    def is_repeated(self) -> bool:
        """Whether it is a list of words."""
        return self.more.get("nargs") in ("+", "*")

    def add_to(self, parser: ArgumentParser) -> None:
        """Add it to ``parser``, with its settings for argparse."""
        parser.add_argument(*self.flags.split(), help=self.help, **self.more)


class StorePair(Action):
    """Collects NAME=VALUE in an object; values are JSON, or texts if they are not JSON."""

    def __call__(
        self, parser: ArgumentParser, namespace: Namespace, values: Any, option_string: str | None = None
    ) -> None:
        """Called by argparse for each."""
        name, equals, value = values.partition("=")
        if not (name and equals):
            raise ArgumentError(self, f"`{values}` is no pair, expected NAME=VALUE")
        try:
            parsed = json.loads(value)
        except ValueError:
            parsed = value
        setattr(namespace, self.dest, {**(getattr(namespace, self.dest) or {}), name: parsed})


def read_json(text: str) -> Any:
    """Return ``text`` from the command line as JSON."""
    try:
        return json.loads(text)
    except ValueError as error:
        raise ArgumentTypeError(f"`{text}` is no JSON: {error}") from error


def pair_option(flag: str, text: str, dest: str) -> Argument:
    """An option for NAME=VALUE that may be repeated."""
    return Argument(flag, f"{text}; may be repeated", {"action": StorePair, "dest": dest, "metavar": "NAME=VALUE"})


def repeated_option(flag: str, text: str, dest: str) -> Argument:
    """An option for texts that may be repeated."""
    more = {"action": "append", "dest": dest, "metavar": flag.lstrip("-").upper()}
    return Argument(flag, f"{text}; may be repeated", more)


def force_option(text: str) -> Argument:
    """An option without which a change is refused."""
    return Argument("--force", text, {"action": "store_true"})


def seconds_option(flag: str, text: str, default: float | None = 0.0) -> Argument:
    """An option whose value is a time."""
    return Argument(flag, text, {"type": float, "default": default, "metavar": "SECONDS"})


def wait_option(text: str, seconds: float) -> Argument:
    """``--wait [SECONDS]``; 0 without it.

    :param text: its help
    :param seconds: the value without SECONDS
    """
    more = {"nargs": "?", "type": float, "const": seconds, "default": 0.0, "metavar": "SECONDS"}
    return Argument("--wait", text, more)


WAIT = wait_option("wait until all live nodes have acknowledged it, at most SECONDS, which are 30 if not given", 30.0)
#: For a job, which may take long: it continues after the time-out, and the command fails.
WAIT_FOR_END = wait_option("wait until it has ended, and fail if that takes longer than SECONDS", math.inf)
LONG = Argument("--long", "show more columns", {"action": "store_true"})
YES = Argument("--yes", "do not ask for confirmation on a terminal", {"action": "store_true"})


def names_argument(name: str, text: str, read: Callable[[str], str] = str) -> Argument:
    """An argument for one or more names.

    :param read: converts a word, as ``type`` of argparse does
    """
    return Argument(name, text, {"nargs": "+", "metavar": name.upper(), "type": read})


def read_text_argument(given: str) -> str:
    """The text of an argument; ``-`` reads standard input."""
    return sys.stdin.read() if given == "-" else given


class CommandParser(_argparse.ArgumentParser):
    """Takes the word behind ``--wait`` for its seconds only if it is a number."""

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Called by argparse for all words behind those of the command."""
        given = list(sys.argv[1:] if args is None else args)
        wait = self._option_string_actions.get("--wait")
        if wait is not None and wait.nargs == "?":
            given = [
                f"--wait={wait.const}" if word == "--wait" and not _is_number(following) else word
                for word, following in zip_longest(given, given[1:], fillvalue="")
            ]
        return super().parse_known_args(given, namespace)


def _is_number(word: str) -> bool:
    try:
        float(word)
    except ValueError:
        return False
    return True
