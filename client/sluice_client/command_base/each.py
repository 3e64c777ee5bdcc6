"""Commands that act on each of several names."""

from __future__ import annotations

from abc import abstractmethod
from argparse import Namespace
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, TextIO

from cliff.formatters.base import ListFormatter
from cliff.lister import Lister
from stevedore.extension import Extension

from sluice_client.command_base.command import DisplayCommand, Shown
from sluice_client.errors import ClientError
from sluice_client.resources.columns import printable


class TextLines(ListFormatter):
    """Prints the last column of each row as a line, as soon as the row is available."""

    def add_argument_group(self, parser: Any) -> None:
        """Called by cliff; there are no options."""

    def emit_list(
        self, column_names: Sequence[str], data: Iterable[Any], stdout: TextIO, parsed_args: Namespace
    ) -> None:
        """Called by cliff."""
        for row in data:
            stdout.write(f"{row[-1]}\n")
            stdout.flush()


class EachCommand(DisplayCommand, Lister):
    """Acts on each of several names, continues after a failure, and fails at the end if one failed.

    One of its arguments takes several names.  Its output is a line for each name that did not fail, and in other
    formats a row with the name and that line; ``--json`` prints each answer of the controller.
    """

    #: the names, and how many of them failed so far
    total, failed = 0, 0

    @property
    def formatter_default(self) -> str:
        """The format without ``-f``."""
        return "text"

    def _load_formatter_plugins(self) -> Any:
        """Called by cliff, which has no format of plain lines."""
        formatters = super()._load_formatter_plugins()
        formatters.extensions.append(Extension("text", None, TextLines, TextLines()))  # type: ignore[arg-type]
        return formatters

    @abstractmethod
    def each(self, name: str, args: Namespace) -> tuple[str, Any]:
        """Act on ``name``.

        :return: a line for the output, and the controller's response
        """

    def run(self, parsed_args: Namespace) -> int:
        """Called by cliff.

        :raises ClientError: when one of several names failed
        """
        status = super().run(parsed_args)
        if self.failed:
            raise ClientError(f"{self.failed} of {self.total} failed")
        return status

    def names(self, args: Namespace) -> list[str]:
        """The names to act on, without repetitions."""
        (given,) = (getattr(args, one.dest) for one in self.arguments if one.is_repeated)
        return list(dict.fromkeys(given))

    def take_action(self, parsed_args: Namespace) -> Shown:
        """Called by cliff; a name is acted on when its row is fetched."""
        return ("Name", "Result"), self._act(self.names(parsed_args), parsed_args)

    def _act(self, names: list[str], args: Namespace) -> Iterator[tuple[str, str]]:
        self.total = len(names)
        for name in names:
            try:
                text, self.raw = self.each(name, args)
            except ClientError as error:
                if self.total == 1:
                    raise
                self.failed += 1
                self.say(f"{printable(name)}: {error}")
            else:
                yield name, text

    def produce_output(self, parsed_args: Namespace, column_names: Sequence[str], data: Any) -> int:
        """Called by cliff."""
        if not self.wants_json(parsed_args):
            return super().produce_output(parsed_args, column_names, data)
        for _ in data:
            super().produce_output(parsed_args, column_names, ())
        return 0
