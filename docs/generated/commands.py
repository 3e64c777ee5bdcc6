"""The reference of all commands, written out of their own table, and the entry points of ``openstack``."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Final

from docs.generated.markdown import page
from docs.generated.wording import argument_form, output_columns

from sluice_client.command_base.arguments import Argument
from sluice_client.command_base.command import REMOVED_IN, ListCommand, ShowCommand, SluiceCommand
from sluice_client.commands import COMMANDS, EARLIER, commands_by_topic

#: The page of earlier words.
EARLIER_WORDS: Final = "reference-earlier-words.md"


def reference() -> str:
    """Every command, as Markdown: a heading, its usage, arguments, columns and examples; and the earlier words."""
    return "\n\n".join([*(_command("###", words) for words in COMMANDS), earlier_words()])


def pages() -> dict[str, str]:
    """Name of each page of the reference → its content."""
    topics = {
        f"reference-{topic.lower().replace(' ', '-')}.md": page(
            f"Commands: {topic.lower()}",
            "[The commands](index.md) says what holds for all of them.",
            *(_command("##", one) for one in words),
        )
        for topic, words in commands_by_topic().items()
    }
    return {**topics, EARLIER_WORDS: page("Commands: earlier words", earlier_words())}


def earlier_words() -> str:
    """The earlier words of commands, and the present ones."""
    about = f"These work until {REMOVED_IN}, with a warning on standard error, also behind `openstack sluice`."
    rows = [f"| `{words}` | `{command.words}` |" for words, command in EARLIER.items()]
    return "\n\n".join([about, "\n".join(["| earlier | now |", "|---|---|", *rows])])


def entry_points() -> dict[str, list[str]]:
    """Group → lines, for the plugin and each of its commands."""
    # `openstack sluice --help` lists what begins with `sluice`. A blank in front hides earlier words; cliff finds them
    # all the same, as it looks for words that begin like those that were typed. They come first: in cliff's completion
    # `health` would take the place of `health show`, but not the other way round.
    named = {f" sluice {words}": command for words, command in EARLIER.items()}
    named |= {f"sluice {words}": command for words, command in COMMANDS.items()}
    commands = [
        f"{name.replace(' ', '_')} = {command.__module__}:{command.__qualname__}" for name, command in named.items()
    ]
    return {"openstack.cli.extension": ["sluice = sluice_client.osc_plugin"], "openstack.sluice.v1": commands}


def _command(level: str, words: str) -> str:
    command = COMMANDS[words]
    usage = " ".join(["sluice", words, *map(_usage, command.accepted())])
    return "\n\n".join([f"{level} {words}", f"    {usage}", *_body(words, command)])


def _body(words: str, command: type[SluiceCommand]) -> Iterator[str]:
    yield inspect.cleandoc(str(command.__doc__))
    arguments = command.accepted()
    if arguments:
        rows = [f"| `{argument_form(one)}` | {one.help} |" for one in arguments]
        yield "\n".join(["| argument | |", "|---|---|", *rows])
    if issubclass(command, ListCommand | ShowCommand):
        yield output_columns(command)
    yield "\n".join(["```sh", *(f"sluice {words} {one}".rstrip() for one in command.examples), "```"])


def _usage(argument: Argument) -> str:
    typed = argument_form(argument).replace(", ", " | ")
    return f"[{typed}]" if argument.flags.startswith("-") else typed
