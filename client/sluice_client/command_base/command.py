"""The base classes of all commands: words, the client, questions, output of rows.

A command is a class with arguments, columns and one call of the client.  The same class serves
``sluice`` and ``openstack sluice``: both are applications of cliff that offer the client as
``app.client_manager.sluice``.  Words and options have the same meaning everywhere (ADR 0072).
"""

from __future__ import annotations

import json
from argparse import ArgumentParser, Namespace, RawDescriptionHelpFormatter
from collections.abc import Iterable, Sequence
from typing import Any, ClassVar, Final, TextIO

from cliff.command import Command
from cliff.display import DisplayCommandBase
from cliff.formatters.base import SingleFormatter
from cliff.formatters.commaseparated import CSVLister
from cliff.lister import Lister
from cliff.show import ShowOne
from stevedore.extension import Extension

from sluice_client.command_base.arguments import LONG, YES, Argument, CommandParser
from sluice_client.errors import ClientError
from sluice_client.resources.columns import Column, Data, printable
from sluice_client.rest.client import Client

Shown = tuple[Sequence[str], Iterable[Any]]
#: The release that no longer has earlier words.
REMOVED_IN: Final = "0.3"


class SluiceCommand(Command):
    """A command with access to the client.

    A concrete class has the ``words`` that call it, and ``earlier`` words, which work with a warning.  A class that
    only forwards names the method of the client that it ``calls``.
    """

    by_words: ClassVar[dict[str, type[SluiceCommand]]] = {}
    by_earlier_words: ClassVar[dict[str, type[SluiceCommand]]] = {}
    words: ClassVar[str] = ""
    earlier: ClassVar[str] = ""
    #: The same command as its earlier words call it; ``deprecated``, so that cliff leaves it out of help.
    Earlier: ClassVar[type[SluiceCommand]]
    calls: ClassVar[str] = ""

    #: read by ``openstack``, which then logs in first
    auth_required = True
    arguments: ClassVar[tuple[Argument, ...]] = ()
    #: command lines for its help and its documentation; empty: it needs none
    examples: ClassVar[tuple[str, ...]] = ("",)
    #: flags for its output
    output_options: ClassVar[tuple[str, ...]] = ()
    #: the question on a terminal before data is lost, with {names} of arguments; empty: no question
    asks: ClassVar[str] = ""

    def __init_subclass__(cls, words: str = "", earlier: str = "", calls: str = "", **options: Any) -> None:
        super().__init_subclass__(**options)
        cls.calls, cls.words = calls or cls.calls, words or cls.words
        if words and cls.by_words.setdefault(words, cls) is not cls:
            raise ValueError(f"`{words}` is two commands")
        if earlier:
            values = {"deprecated": True, "earlier": earlier, "__doc__": cls.__doc__, "__module__": cls.__module__}
            cls.Earlier = type("Earlier", (cls,), values | {"__qualname__": f"{cls.__qualname__}.Earlier"})
            if cls.by_earlier_words.setdefault(earlier, cls.Earlier) is not cls.Earlier:
                raise ValueError(f"`{earlier}` was two commands")

    @property
    def client(self) -> Client:
        """The client of the application that runs this."""
        found: Client = self.app.client_manager.sluice  # type: ignore[attr-defined]
        return found

    def get_parser(self, prog_name: str) -> ArgumentParser:
        """Called by cliff."""
        parser = super().get_parser(prog_name)
        parser.__class__ = CommandParser  # cliff has no other way to set the parser's class
        for argument in self.accepted():
            argument.add_to(parser)
        # cliff's formatter would join the examples to one paragraph
        parser.formatter_class = RawDescriptionHelpFormatter
        shown = "\n".join(f"  {prog_name} {one}".rstrip() for one in self.examples)
        parser.epilog = f"examples:\n{shown}\n\n{parser.epilog or ''}".rstrip()
        return parser

    def run(self, parsed_args: Namespace) -> int:
        """Called by cliff.

        :raises ClientError: when the user at a terminal does not confirm, or a file cannot be opened
        """
        if self.deprecated:
            now = f"`{self.earlier}` is now `{self.words}`"
            self.say(f"sluice: {now}; the old words work until {REMOVED_IN}")
        if self.asks and not parsed_args.yes:
            self._ask(self.question(parsed_args))
        try:
            return super().run(parsed_args)
        except OSError as error:
            if error.filename is None:  # of a pipe that was closed, say
                raise
            raise ClientError(f"the file `{error.filename}` cannot be opened: {error.strerror}") from error
        except UnicodeDecodeError as error:
            raise ClientError("what is read holds no text, expected UTF-8") from error

    def question(self, args: Namespace) -> str:
        """The question on a terminal; empty for none, as with ``--plan``."""
        if getattr(args, "plan", False):
            return ""
        given = {name: ", ".join(value) if isinstance(value, list) else value for name, value in vars(args).items()}
        return self.asks.format_map(given)

    def _ask(self, question: str) -> None:
        if not question or not self.app.stdin.isatty():
            return
        self.app.stderr.write(f"{printable(question)}? [y/N] ")
        self.app.stderr.flush()
        if self.app.stdin.readline().strip().lower() not in ("y", "yes"):
            raise ClientError("nothing was changed, expected `y`, or `--yes` on the command line")

    def forward(self, args: Namespace, leave_out: str = "") -> Any:
        """Return the answer of the method that it ``calls``, with the arguments in their order, and the given options
        by name.

        :param leave_out: an option that is not passed on
        """
        values = [(argument, getattr(args, argument.dest)) for argument in self.arguments if argument.dest != leave_out]
        ordered = [value for argument, value in values if not argument.is_option]
        named = {argument.dest: value for argument, value in values if argument.is_option and value is not None}
        return getattr(self.client, self.calls)(*ordered, **named)

    @classmethod
    def accepted(cls) -> tuple[Argument, ...]:
        """All its arguments, without those for the output format."""
        return (*cls.arguments, YES) if cls.asks else cls.arguments

    @classmethod
    def flags(cls) -> tuple[str, ...]:
        """The flags of its options, and the frequent ones of the output format."""
        flags = (flag for argument in cls.accepted() if argument.is_option for flag in argument.flags.split())
        return (*flags, *cls.output_options, "--help")

    def say(self, text: str) -> None:
        """Print a line of information, beside the output."""
        self.app.stderr.write(text + "\n")
        self.app.stderr.flush()


class DisplayCommand(SluiceCommand, DisplayCommandBase[Any]):
    """A command with an output in any format; ``--json`` prints the controller's JSON unchanged."""

    raw: Any = None
    output_options = ("-f", "-c", "--json")

    def get_parser(self, prog_name: str) -> ArgumentParser:
        """Called by cliff."""
        parser = super().get_parser(prog_name)
        text = "print the controller's JSON unchanged"
        self._formatter_group.add_argument("--json", action="store_true", dest="as_json", help=text)
        return parser

    def wants_json(self, args: Namespace) -> bool:
        """Whether ``--json`` stands before or behind the words of the command."""
        return args.as_json or getattr(self.app_args, "json", False)

    def produce_output(self, parsed_args: Namespace, column_names: Sequence[str], data: Any) -> int:
        """Called by cliff."""
        if self.wants_json(parsed_args):
            self.app.stdout.write(json.dumps(self.raw, indent=2, ensure_ascii=False) + "\n")
            return 0
        if parsed_args.columns and not set(parsed_args.columns) & set(column_names):
            unknown, known = (", ".join(f"`{one}`" for one in names) for names in (parsed_args.columns, column_names))
            raise ClientError(f"there is no column {unknown}, expected {known}")
        # abstract in cliff's base class, whose subclass overrides it
        return super().produce_output(parsed_args, column_names, data)  # type: ignore[safe-super]


class ListCommand(DisplayCommand, Lister):
    """Lists the rows of :meth:`fetch`; ``long`` columns only with ``--long``."""

    columns: ClassVar[tuple[Column, ...]]
    #: what is said in the place of a table without rows
    empty: ClassVar[str] = "there is nothing to show"

    @classmethod
    def accepted(cls) -> tuple[Argument, ...]:
        """Its own arguments, and the common one of lists."""
        return (*super().accepted(), LONG)

    def fetch(self, args: Namespace) -> Iterable[Data]:
        """The rows."""
        found: Iterable[Data] = self.forward(args)
        return found

    def take_action(self, parsed_args: Namespace) -> Shown:
        """Called by cliff."""
        self.raw = found = list(self.fetch(parsed_args))
        shown = [column for column in self.columns if parsed_args.long or not column.long]
        return [column.title for column in shown], [[column.cell(one) for column in shown] for one in found]

    def produce_output(self, parsed_args: Namespace, column_names: Sequence[str], data: Any) -> int:
        """Called by cliff, whose table of no rows is an empty line."""
        is_table = parsed_args.formatter == "table" and not parsed_args.print_empty
        if is_table and not data and not self.wants_json(parsed_args):
            self.say(self.empty)
            return 0
        return super().produce_output(parsed_args, column_names, data)


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
