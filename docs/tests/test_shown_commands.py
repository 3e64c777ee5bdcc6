"""Every `sluice` and `openstack sluice` command line in a block of shell commands is valid."""

import re
import shlex

import pytest
from cliff.app import App
from cliff.commandmanager import CommandManager
from docs.checks.pages import DOCS, Page

from sluice_client.commands import COMMANDS

#: Texts before a command line: none, a prompt, or commands that run it.
_begins = re.compile(r"(?:^ *|\$ |\$\(|\| |&& |! |until )(?:openstack )?sluice (?=[a-z-])", re.MULTILINE)
#: Ends the words of a command for a shell.
_ENDS = ("|", "&", ">", "<", ";", "(", ")", "#")


def words_of(line):
    """The words that the program gets."""
    lexer = shlex.shlex(line, posix=True, punctuation_chars="|&;<>()")
    lexer.whitespace_split, lexer.commenters = True, ""
    found = []
    for word in lexer:
        if word.startswith(_ENDS):
            break
        found.append(word)
    return found


def command_lines(page):
    """The words of each command line, without `sluice` and its own options."""
    for block in Page(page).shell_blocks:
        text = block.text.replace("\\\n", " ")
        for begin in _begins.finditer(text):
            words = words_of(text[begin.end() :].partition("\n")[0])
            while words[0].startswith("--"):
                words = words[1:] if "=" in words[0] or words[0] == "--json" else words[2:]
            yield words


#: Pages of reference are generated from the same table, and tested with it.
SHOWN = {
    f"{page.relative_to(DOCS)}: {shlex.join(words)}": words
    for page in sorted(DOCS.rglob("*.md"))
    if not page.name.startswith("reference-")
    for words in command_lines(page)
}


@pytest.mark.parametrize("name", SHOWN)
def test_a_shown_command_is_understood(name):
    words = SHOWN[name]
    known = [" ".join(words[:count]) for count in (4, 3, 2, 1) if " ".join(words[:count]) in COMMANDS]
    assert known or words[0] in ("help", "complete")
    for command in known[:1]:
        parser = COMMANDS[command](App("test", "0", CommandManager("test.nothing")), None).get_parser(command)
        parser.parse_args(words[len(command.split()) :])


def test_lines_are_found_behind_what_a_shell_runs(tmp_path):
    page = tmp_path / "page.md"
    page.write_text(
        "```sh\nA=$(sluice --json policy list -c ID) && sluice node \\\n  list  # all\n```\n\n"
        "1. Do:\n\n   ```sh host=proxy\n   for a in b; do\n       openstack sluice health show\n   done\n   ```\n"
    )
    assert list(command_lines(page)) == [["policy", "list", "-c", "ID"], ["node", "list"], ["health", "show"]]
