"""``sluice --help``: commands by topic, with an example of each topic; ``sluice policy --help``: those of a thing."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterable, Iterator

from cliff.help import HelpCommand

from sluice_client.commands import COMMANDS, TOPICS, commands_by_topic


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


class Help(HelpCommand):
    """Show help of a command, of the commands of a thing, or of all."""

    def take_action(self, parsed_args: Namespace) -> int:
        """Called by cliff."""
        given = parsed_args.cmd
        if not given:
            self.app.stdout.write(f"{self.app.parser.format_help()}\n{help_by_topic()}")
            return 0
        beginning = " ".join(given)
        of_thing = [words for words in COMMANDS if f"{words} ".startswith(f"{beginning} ")]
        if beginning in COMMANDS or not of_thing:
            return super().take_action(parsed_args)
        self.app.stdout.write("\n".join(command_lines(of_thing)) + "\n")
        return 0
