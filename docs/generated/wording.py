"""Texts about a command that Markdown and manual pages share."""

from __future__ import annotations

from argparse import BooleanOptionalAction

from sluice_client.command_base.arguments import Argument
from sluice_client.command_base.command import ListCommand, ShowCommand


def output_columns(command: type[ListCommand | ShowCommand]) -> str:
    """The columns of its output, as a sentence."""
    short = ", ".join(column.title for column in command.columns if not column.long)
    long = ", ".join(column.title for column in command.columns if column.long)
    name = "Columns" if issubclass(command, ListCommand) else "Fields"
    return f"{name}: {short}" + (f"; with `--long` also {long}." if long else ".")


def argument_form(argument: Argument) -> str:
    """An argument as typed: ``--wait SECONDS``."""
    flag = argument.flags.split()[-1]
    more = argument.more
    if not flag.startswith("-"):
        if more.get("nargs") == "?":
            return f"[{more['metavar']}]"
        return f"{more['metavar']}{' …' if argument.is_repeated else ''}"
    if more.get("action") in ("store_true", "store_const"):
        return flag
    if more.get("action") is BooleanOptionalAction:
        return f"{flag}, --no-{flag.removeprefix('--')}"
    choices = more.get("choices")
    value = "{" + ",".join(choices) + "}" if choices else more.get("metavar", flag.removeprefix("--").upper())
    return f"{flag} [{value}]" if more.get("nargs") == "?" else f"{flag} {value}"
