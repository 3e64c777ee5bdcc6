"""Manual pages in the macros of man(7), generated from the table of commands like the pages of commands."""

from __future__ import annotations

import inspect
from argparse import Action, ArgumentParser
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from docs.generated.wording import argument_form, output_columns

from sluice_client.cli import Sluice
from sluice_client.command_base.arguments import Argument
from sluice_client.command_base.command import ListCommand, ShowCommand, SluiceCommand
from sluice_client.commands import COMMANDS
from sluice_client.osc_plugin import build_option_parser

_OUTPUT: Final = (
    "What is listed or shown has -f table, json, yaml, csv or value and -c COLUMN, what is shown also -f shell; lists "
    "have --long and --sort-column. What acts on several names has the same, and a line for each name without -f. "
    "--json prints the controller's JSON as it came. JSON and YAML hold values as the controller gave them. Times are "
    "ISO 8601 in UTC. "
    "Warnings, progress and errors go to standard error.",
    "An error is the controller's reason, the HTTP status and the id under which the controller's log has the request.",
)
_STATUS: Final = (
    ("0", "done"),
    ("1", "something was refused, or no answer came; of several names at least one"),
    ("2", "the command line is wrong"),
    ("130", "interrupted"),
)


@dataclass(frozen=True, slots=True)
class Page:
    """One manual page: ``name`` is the file's, ``program`` the program before the words of a command."""

    name: str
    program: str
    summary: str
    about: Sequence[str]
    environment: Sequence[tuple[str, str]]
    options: Sequence[Action]

    def text(self) -> str:
        """The whole page, in the macros of man(7), with a line end."""
        return "\n".join(self._lines()) + "\n"

    def _lines(self) -> Iterator[str]:
        yield f'.TH {self.name.upper()} 1 "" Sluice "User Commands"'
        yield from (".SH NAME", f"{escaped(self.name)} \\- {escaped(self.summary)}")
        yield from (".SH SYNOPSIS", f"{bold(self.program)} [{italic('option')} ...] {italic('command')} ...")
        yield from (".SH DESCRIPTION", *_paragraphs(self.about))
        yield ".SH OPTIONS"
        for one in self.options:
            yield from _entry(_option(one), one.help or "")
        yield ".SH COMMANDS"
        for words, command in COMMANDS.items():
            yield from _command(self.program, words, command)
        yield from (".SH OUTPUT", *_paragraphs(_OUTPUT))
        for title, pairs in (("EXIT STATUS", _STATUS), ("ENVIRONMENT", self.environment)):
            yield f".SH {title}"
            for name, text in pairs:
                yield from _entry(bold(name), text)


def pages() -> dict[str, str]:
    """Name of each file → the page."""
    common = "Policies say what Swift does to whose objects; the controller checks them and every node enforces them."
    alone = Page(
        "sluice",
        "sluice",
        "write policies for Swift and watch them work",
        (
            common,
            "Options of sluice stand before the command, those of a command behind it. An option counts before "
            "SLUICE_URL and SLUICE_TOKEN_FILE, and these before the cloud that OS_CLOUD or OS_AUTH_URL names.",
        ),
        (
            ("SLUICE_URL", "where the controller is"),
            ("SLUICE_TOKEN_FILE", "a file with the admin token"),
            ("OS_CLOUD", "the cloud of clouds.yaml to log in to, and all else that openstacksdk reads of OS_*"),
        ),
        _shown(Sluice().build_option_parser(None, "")),
    )
    plugin = Page(
        "openstack-sluice",
        "openstack sluice",
        "write policies for Swift, as a plugin of the OpenStack client",
        (
            common,
            "The controller is found in the service catalogue, service type sluice. Without Keystone, "
            "--os-auth-type none, --os-endpoint and --os-sluice-token-file do.",
        ),
        (
            ("OS_SLUICE_ENDPOINT", "where the controller is, in place of the service catalogue"),
            ("OS_SLUICE_API_VERSION", "version of the controller's API"),
            ("SLUICE_TOKEN_FILE", "a file with the admin token, for use without Keystone"),
        ),
        _shown(build_option_parser(ArgumentParser(add_help=False))),
    )
    return {f"{one.name}.1": one.text() for one in (alone, plugin)}


def _shown(parser: ArgumentParser) -> list[Action]:
    # argparse has no public list of them
    return [one for one in parser._actions if one.option_strings]


def _command(program: str, words: str, command: type[SluiceCommand]) -> Iterator[str]:
    accepted = command.accepted()
    yield f".SS {escaped(words)}"
    yield " ".join([bold(f"{program} {words}"), *map(_usage, accepted)])
    yield from (".PP", escaped(inspect.cleandoc(str(command.__doc__))))
    for one in accepted:
        yield from _entry(_argument(one), one.help)
    if issubclass(command, ListCommand | ShowCommand):
        yield from (".PP", escaped(output_columns(command)))
    lines = [escaped(f"{program} {words} {one}".rstrip()) for one in command.examples]
    yield from (".PP", "Examples:", ".PP", ".RS 4", ".nf", *lines, ".fi", ".RE")


def _paragraphs(texts: Sequence[str]) -> Iterator[str]:
    for number, one in enumerate(texts):
        yield from ((".PP",) if number else ())
        yield escaped(one)


def _entry(term: str, text: str) -> Iterator[str]:
    yield from (".TP", term, escaped(text))


def _option(action: Action) -> str:
    flags = ", ".join(map(bold, action.option_strings))
    if action.nargs == 0:
        return flags
    name = action.metavar if isinstance(action.metavar, str) else action.dest.upper()
    return f"{flags} {italic(name)}"


def _argument(argument: Argument) -> str:
    """The typed form: words in bold, placeholders in italics."""
    flag, _, value = argument_form(argument).partition(" ")
    if not argument.flags.startswith("-"):
        return italic(argument_form(argument))
    return f"{bold(flag)} {italic(value)}" if value and not value.startswith("-") else bold(argument_form(argument))


def _usage(argument: Argument) -> str:
    return f"[{_argument(argument)}]" if argument.flags.startswith("-") else _argument(argument)


def bold(text: str) -> str:
    """``text`` as literal input."""
    return f"\\fB{escaped(text)}\\fR"


def italic(text: str) -> str:
    """``text`` as a placeholder."""
    return f"\\fI{escaped(text)}\\fR"


def escaped(text: str) -> str:
    """``text`` on a separate line, without characters that roff interprets."""
    signs = {"\\": "\\e", "-": "\\-", "`": "\\(ga", "'": "\\(aq", "^": "\\(ha", "~": "\\(ti"}
    found = "".join(signs.get(sign, sign if sign.isascii() else f"\\[u{ord(sign):04X}]") for sign in text)
    return f"\\&{found}" if found.startswith(".") else found
