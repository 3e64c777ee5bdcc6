"""The reference of all commands, written out of their own table, and the entry points of ``openstack``."""

from __future__ import annotations

import inspect
from collections.abc import Iterator

from docs.generated.markdown import page
from docs.generated.wording import argument_form, output_columns

from sluice_client.command_base.command import Argument, ListCommand, ShowCommand, SluiceCommand
from sluice_client.commands import COMMANDS


def reference() -> str:
    """Every command, as Markdown: a heading, its usage, arguments, columns and examples."""
    return "\n\n".join(_command("###", words) for words in COMMANDS)


def pages() -> dict[str, str]:
    """Name of each page of the reference → its content."""
    return {
        f"reference-{topic.lower().replace(' ', '-')}.md": page(
            f"Commands: {topic.lower()}",
            "[The commands](index.md) says what holds for all of them.",
            *(_command("##", one) for one in words),
        )
        for topic, words in commands_by_topic().items()
    }


def commands_by_topic() -> dict[str, list[str]]:
    """Topic → words of its commands."""
    found: dict[str, list[str]] = {}
    for words, command in COMMANDS.items():
        found.setdefault(command.__module__.split(".")[2], []).append(words)
    return found


def entry_points() -> dict[str, list[str]]:
    """Group → lines, for the plugin and each of its commands."""
    commands = [
        f"sluice_{words.replace(' ', '_')} = {command.__module__}:{command.__name__}"
        for words, command in COMMANDS.items()
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
    if command.examples:
        yield "\n".join(["```sh", *(f"sluice {words} {one}" for one in command.examples), "```"])


def _usage(argument: Argument) -> str:
    typed = argument_form(argument).replace(", ", " | ")
    return f"[{typed}]" if argument.flags.startswith("-") else typed
