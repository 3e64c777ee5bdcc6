"""The reference of all commands, written out of their own tables: ``python -m docs.client_manual.describe``.

It replaces what stands between two marks in ``docs/cli/client.md``, and the manual pages in ``docs/man``.
"""

from __future__ import annotations

import argparse
import inspect
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from docs.client_manual.manual import pages
from docs.client_manual.wording import argument_form, output_columns

from sluice_client.command_base.command import Argument, ListCommand, ShowCommand, SluiceCommand
from sluice_client.commands import COMMANDS
from sluice_client.errors import ClientError

BEGIN: Final = "<!-- made by python -m docs.client_manual.describe: begin -->"
END: Final = "<!-- made by python -m docs.client_manual.describe: end -->"
PAGE: Final = Path("docs/cli/client.md")
MANUAL: Final = Path("docs/man")


def reference() -> str:
    """Every command, as Markdown: a heading, its usage, arguments, columns and examples."""
    return "\n\n".join(_command(words, command) for words, command in COMMANDS.items())


def with_reference(page: str) -> str:
    """``page`` with the reference as it is now between the marks.

    :raises ClientError: when the marks are missing
    """
    head, begin, rest = page.partition(BEGIN)
    _, end, tail = rest.partition(END)
    if not (begin and end):
        raise ClientError(f"the page has no marks, expected `{BEGIN}` and `{END}`")
    return f"{head}{BEGIN}\n\n{reference()}\n\n{END}{tail}"


def entry_points() -> dict[str, list[str]]:
    """Group → lines, for the plugin and each of its commands."""
    commands = [
        f"sluice_{words.replace(' ', '_')} = {command.__module__}:{command.__name__}"
        for words, command in COMMANDS.items()
    ]
    return {"openstack.cli.extension": ["sluice = sluice_client.osc_plugin"], "openstack.sluice.v1": commands}


def _command(words: str, command: type[SluiceCommand]) -> str:
    usage = " ".join(["sluice", words, *map(_usage, command.accepted())])
    return "\n\n".join([f"### {words}", f"    {usage}", *_body(words, command)])


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


def write_manual(folder: Path) -> None:
    """Write the manual pages as they are now into ``folder``."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in pages().items():
        (folder / name).write_text(text, encoding="ascii")


def main(argv: Sequence[str] | None = None) -> int:
    """1 when the page cannot be written."""
    parser = argparse.ArgumentParser(prog="python -m docs.client_manual.describe", description="Document all commands.")
    parser.add_argument("--page", type=Path, default=PAGE, help="the page to renew, default: docs/cli/client.md")
    parser.add_argument("--man", type=Path, default=MANUAL, help="folder of the manual pages, default: docs/man")
    args = parser.parse_args(argv)
    try:
        page = with_reference(args.page.read_text(encoding="utf-8"))
        args.page.write_text(page, encoding="utf-8")
        write_manual(args.man)
    except (ClientError, OSError) as error:
        print(f"describe: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
