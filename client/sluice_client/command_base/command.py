"""The base classes of all commands: arguments as a table, the client, output of rows, errors of several names.

A command is a class with arguments, columns and one call of the client.  The same class serves
``sluice`` and ``openstack sluice``: both are applications of cliff that offer the client as
``app.client_manager.sluice``.
"""

from __future__ import annotations

import json
import sys
from abc import abstractmethod
from argparse import Action, ArgumentError, ArgumentParser, ArgumentTypeError, Namespace, RawDescriptionHelpFormatter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, TextIO

from cliff.command import Command
from cliff.display import DisplayCommandBase
from cliff.formatters.base import SingleFormatter
from cliff.formatters.commaseparated import CSVLister
from cliff.lister import Lister
from cliff.show import ShowOne
from stevedore.extension import Extension

from sluice_client.errors import ClientError
from sluice_client.resources.columns import Column, Data, printable
from sluice_client.rest.client import Client

Shown = tuple[Sequence[str], Iterable[Any]]


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
        """Add it to ``parser``, with all that argparse is told of it."""
        parser.add_argument(*self.flags.split(), help=self.help, **self.more)


class StorePair(Action):
    """Collects NAME=VALUE in an object; values are JSON, or texts where they are none."""

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
    """``text``, given on the command line, as JSON."""
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
    """The option for a change that is refused without it."""
    return Argument("--force", text, {"action": "store_true"})


def seconds_option(flag: str, text: str, default: float | None = 0.0) -> Argument:
    """An option that is a time."""
    return Argument(flag, text, {"type": float, "default": default, "metavar": "SECONDS"})


WAIT = seconds_option("--wait", "wait until all live nodes have acknowledged it, at most 30")
LONG = Argument("--long", "show more columns", {"action": "store_true"})


class SluiceCommand(Command):
    """A command with the client at hand.

    A class that is one names the ``words`` that call it, and those that did earlier.  One that only forwards names the
    method of the client that it ``calls``.
    """

    by_words: ClassVar[dict[str, type[SluiceCommand]]] = {}
    by_earlier_words: ClassVar[dict[str, type[SluiceCommand]]] = {}
    calls: ClassVar[str] = ""

    #: read by ``openstack``, which logs in first
    auth_required = True
    arguments: ClassVar[tuple[Argument, ...]] = ()
    #: what may stand behind its words, for its help and its documentation
    examples: ClassVar[tuple[str, ...]] = ()

    def __init_subclass__(cls, words: str = "", earlier: str = "", calls: str = "", **options: Any) -> None:
        super().__init_subclass__(**options)
        cls.calls = calls or cls.calls
        for known, name in ((cls.by_words, words), (cls.by_earlier_words, earlier)):
            if name and known.setdefault(name, cls) is not cls:
                raise ValueError(f"`{name}` is two commands")

    @property
    def client(self) -> Client:
        """The client of the application that runs this."""
        found: Client = self.app.client_manager.sluice  # type: ignore[attr-defined]
        return found

    def get_parser(self, prog_name: str) -> ArgumentParser:
        """Called by cliff."""
        parser = super().get_parser(prog_name)
        for argument in self.accepted():
            argument.add_to(parser)
        if self.examples:
            # the formatter of cliff would make one paragraph of them
            parser.formatter_class = RawDescriptionHelpFormatter
            shown = "\n".join(f"  {prog_name} {one}".rstrip() for one in self.examples)
            parser.epilog = f"examples:\n{shown}\n\n{parser.epilog or ''}".rstrip()
        return parser

    def forward(self, args: Namespace, leave_out: str = "") -> Any:
        """What the method that it ``calls`` answers to the arguments in their order, and the given options by name.

        :param leave_out: an option that is the command's own
        """
        values = [(argument, getattr(args, argument.dest)) for argument in self.arguments if argument.dest != leave_out]
        ordered = [value for argument, value in values if not argument.is_option]
        named = {argument.dest: value for argument, value in values if argument.is_option and value is not None}
        return getattr(self.client, self.calls)(*ordered, **named)

    @classmethod
    def accepted(cls) -> tuple[Argument, ...]:
        """All its arguments, without those of cliff for the output format."""
        return cls.arguments

    def say(self, text: str) -> None:
        """A line for people, beside the output."""
        self.app.stderr.write(text + "\n")
        self.app.stderr.flush()


class DisplayCommand(SluiceCommand, DisplayCommandBase[Any]):
    """A command with an output in any format; ``sluice --json`` prints the controller's JSON as it came."""

    raw: Any = None

    def produce_output(self, parsed_args: Namespace, column_names: Sequence[str], data: Any) -> int:
        """Called by cliff."""
        if getattr(self.app_args, "json", False):
            self.app.stdout.write(json.dumps(self.raw, indent=2, ensure_ascii=False) + "\n")
            return 0
        # abstract in the class that cliff derives its displays from, and theirs by the time this is one of them
        return super().produce_output(parsed_args, column_names, data)  # type: ignore[safe-super]


class ListCommand(DisplayCommand, Lister):
    """Lists the rows of :meth:`fetch`; ``long`` columns only with ``--long``."""

    columns: ClassVar[tuple[Column, ...]]

    @classmethod
    def accepted(cls) -> tuple[Argument, ...]:
        """Its own, and the one that all lists have."""
        return (*cls.arguments, LONG)

    def fetch(self, args: Namespace) -> Iterable[Data]:
        """The rows."""
        found: Iterable[Data] = self.forward(args)
        return found

    def take_action(self, parsed_args: Namespace) -> Shown:
        """Called by cliff."""
        self.raw = found = list(self.fetch(parsed_args))
        shown = [column for column in self.columns if parsed_args.long or not column.long]
        return [column.title for column in shown], [[column.cell(one) for column in shown] for one in found]


class OneRow(CSVLister, SingleFormatter):
    """CSV of one item: a row of titles and a row of values."""

    def emit_one(
        self, column_names: Sequence[str], data: Sequence[Any], stdout: TextIO, parsed_args: Namespace
    ) -> None:
        """Called by cliff."""
        self.emit_list(column_names, [data], stdout, parsed_args)


class ShowCommand(DisplayCommand, ShowOne):
    """Shows the item of :meth:`fetch`."""

    columns: ClassVar[tuple[Column, ...]]

    def _load_formatter_plugins(self) -> Any:
        """Called by cliff, which has CSV for lists alone."""
        formatters = super()._load_formatter_plugins()
        row = OneRow()
        formatters.extensions.append(Extension("csv", None, OneRow, row))  # type: ignore[arg-type]
        return formatters

    def fetch(self, args: Namespace) -> Data:
        """The item."""
        found: Data = self.forward(args)
        return found

    def take_action(self, parsed_args: Namespace) -> Shown:
        """Called by cliff."""
        self.raw = found = self.fetch(parsed_args)
        return [column.title for column in self.columns], [column.cell(found) for column in self.columns]


class EachCommand(SluiceCommand):
    """Acts on each of several names, continues after a failure, and fails at the end if one failed.

    One of its arguments is for several names.
    """

    @abstractmethod
    def each(self, name: str, args: Namespace) -> tuple[str, Any]:
        """Act on ``name``.

        :return: a line for the output, and the controller's response
        """

    def take_action(self, parsed_args: Namespace) -> int:
        """Called by cliff."""
        (given,) = (getattr(parsed_args, one.dest) for one in self.arguments if one.is_repeated)
        names = list(dict.fromkeys(given))
        failed = 0
        for name in names:
            try:
                text, raw = self.each(name, parsed_args)
            except ClientError as error:
                if len(names) == 1:
                    raise
                failed += 1
                self.say(f"{printable(name)}: {error}")
            else:
                as_json = getattr(self.app_args, "json", False)
                self.app.stdout.write((json.dumps(raw, indent=2, ensure_ascii=False) if as_json else text) + "\n")
        if failed:
            raise ClientError(f"{failed} of {len(names)} failed")
        return 0


def names_argument(name: str, text: str) -> Argument:
    """An argument for one or more names."""
    return Argument(name, text, {"nargs": "+", "metavar": name.upper()})


def read_text_argument(given: str) -> str:
    """The text of an argument; ``-`` reads standard input."""
    return sys.stdin.read() if given == "-" else given
