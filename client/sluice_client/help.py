"""``sluice --help``: commands by topic, with an example of each topic; ``sluice policy --help``: those of a thing."""

from __future__ import annotations

import difflib
from argparse import Namespace
from collections.abc import Iterable, Iterator, Sequence
from itertools import takewhile
from typing import Final

from cliff.app import App
from cliff.help import HelpCommand

from sluice_client.commands import COMMANDS, TOPICS, commands_by_topic

#: The exit status of a wrong command line.
USAGE: Final = 2
#: Of two words or commands, 0 to 1: from here on one is a near miss of the other.
_NEAR: Final = 0.75


def help_by_topic() -> str:
    """Return all commands, with the first sentence of their help."""
    return "\n".join("\n".join(_topic(topic, words)) + "\n" for topic, words in commands_by_topic().items())


def _topic(topic: str, words: list[str]) -> Iterator[str]:
    shown = TOPICS[topic].introduced_by
    yield f"{topic}, such as `sluice {shown} {COMMANDS[shown].examples[0]}`:"
    yield from command_lines(words)


def command_lines(words: Iterable[str]) -> Iterator[str]:
    """Yield a line for each command: its words, and its purpose."""
    for one in words:
        about = " ".join(str(COMMANDS[one].__doc__).partition("\n\n")[0].split())
        yield f"  {one:<26} {about.rstrip('.')}"


def unknown_command(typed: Sequence[str]) -> str:
    """Why ``typed`` is no command: the near miss, or else the commands of the thing that it names."""
    words = list(takewhile(lambda word: not word.startswith("-"), typed))
    meant = words if _known(words) else _with_first_word(words)
    known = _known(meant)
    of_thing, is_whole = commands_of(meant[:known]), " ".join(meant[:known]) in COMMANDS
    wrong = f"`{' '.join(words[: known if is_whole else known + 1])}` is no command"
    if not known:
        return f"{wrong}, see `sluice --help`"
    if is_whole or len(meant) > known:
        slips = [(_likeness(one, " ".join(meant[: len(one.split())])), one) for one in of_thing]
        alike, nearest = max(slips)
        if alike >= _NEAR:
            return f"{wrong}, did you mean `{nearest}`"
    return "\n".join([f"{wrong}, expected one of", *command_lines(of_thing)])


def refuse_unknown(app: App, typed: Sequence[str]) -> int:
    """Say on standard error that ``typed`` is no command; the exit status."""
    error, *commands = unknown_command(typed).split("\n")
    app.LOG.error(error)
    app.stderr.writelines(f"{line}\n" for line in commands)  # a log record has one line
    return USAGE


def _with_first_word(words: list[str]) -> list[str]:
    """``words``, the first one of which is a slip, with the word that was meant; none when nothing is near."""
    first = {one.partition(" ")[0] for one in COMMANDS}
    near = difflib.get_close_matches(words[0] if words else "", first, 1, _NEAR)
    return [*near, *words[1:]] if near else []


def _likeness(first: str, second: str) -> float:
    return difflib.SequenceMatcher(None, first, second).ratio()


def commands_of(beginning: Sequence[str]) -> list[str]:
    """The commands that begin with these words."""
    return [words for words in COMMANDS if words.split()[: len(beginning)] == list(beginning)]


def _known(words: Sequence[str]) -> int:
    """How many of the first words some command begins with."""
    return max(number for number in range(len(words) + 1) if commands_of(words[:number]))


class Help(HelpCommand):
    """Show help of a command, of the commands of a thing, or of all."""

    def take_action(self, parsed_args: Namespace) -> int:
        """Called by cliff."""
        given = parsed_args.cmd
        if not given:
            self.app.stdout.write(f"{self.app.parser.format_help()}\n{help_by_topic()}")
            return 0
        of_thing = commands_of(given)
        if of_thing and " ".join(given) not in COMMANDS:
            self.app.stdout.write("\n".join(command_lines(of_thing)) + "\n")
            return 0
        try:
            self.app.command_manager.find_command(given)
        except ValueError:
            return refuse_unknown(self.app, given)
        return super().take_action(parsed_args)
