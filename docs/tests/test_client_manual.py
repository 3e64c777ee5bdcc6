"""The documentation and the packaging say what the table of commands says."""

import shlex
from importlib import import_module
from pathlib import Path

import pytest
from cliff.app import App
from cliff.command import Command
from cliff.commandmanager import CommandManager
from docs.client_manual import describe, manual

from sluice_client.commands import COMMANDS
from sluice_client.errors import ClientError

ROOT = Path(__file__).resolve().parents[2]


def test_the_page_shows_the_commands_as_they_are():
    page = (ROOT / "docs" / "cli" / "client.md").read_text()
    assert page == describe.with_reference(page), "run `python -m docs.client_manual.describe`"


@pytest.mark.parametrize("name", ["sluice.1", "openstack-sluice.1"])
def test_the_manual_shows_the_commands_as_they_are(name):
    shown = manual.pages()[name]
    assert (ROOT / "docs" / "man" / name).read_text() == shown, "run `python -m docs.client_manual.describe`"
    program = name.removesuffix(".1").replace("-", " ")
    assert all(f"\n.SS {words}\n\\fB{program} {words}\\fR" in shown for words in COMMANDS)


ROFF = {
    "plain": ("a b", "a b"),
    "an option": ("--long", r"\-\-long"),
    "a request": (".so /etc/passwd", r"\&.so /etc/passwd"),
    "quotes": ("`a` 'b'", r"\(gaa\(ga \(aqb\(aq"),
    "an escape": (r"\fB", r"\efB"),
    "another script": ("…", r"\[u2026]"),
}


@pytest.mark.parametrize("name", ROFF)
def test_nothing_that_is_described_is_obeyed_by_roff(name):
    text, safe = ROFF[name]
    assert manual.escaped(text) == safe


def test_no_line_of_the_manual_begins_a_request_by_accident():
    known = {".TH", ".SH", ".SS", ".PP", ".TP", ".RS", ".RE", ".nf", ".fi"}
    lines = [line for page in manual.pages().values() for line in page.splitlines()]
    assert {line.split()[0] for line in lines if line.startswith((".", "'"))} == known
    assert all(line.isascii() for line in lines)


def words_of(example):
    """What of it the command gets: whatever a shell would not keep for itself."""
    found = shlex.split(example)
    return found[: next((place for place, word in enumerate(found) if word in ("<", ">")), len(found))]


@pytest.mark.parametrize("words", COMMANDS)
def test_examples_are_command_lines_that_are_understood(words):
    command = COMMANDS[words]
    parser = command(App("test", "0", CommandManager("test.nothing")), None).get_parser(f"sluice {words}")
    for example in command.examples:
        parser.parse_args(words_of(example))
        assert f"\n  sluice {words} {example}\n" in parser.format_help() + "\n"
    wants = [one for one in command.accepted() if not one.flags.startswith("-")]
    assert command.examples or not wants, "whoever must be given something shows what"


def test_a_page_is_renewed_between_its_marks_and_nowhere_else(tmp_path):
    page = tmp_path / "page.md"
    page.write_text(f"before\n{describe.BEGIN}\nold\n{describe.END}\nafter\n")
    assert describe.main(["--page", str(page), "--man", str(tmp_path / "man")]) == 0
    assert {one.name for one in (tmp_path / "man").iterdir()} == {"sluice.1", "openstack-sluice.1"}
    text = page.read_text()
    assert text.startswith(f"before\n{describe.BEGIN}\n\n### {next(iter(COMMANDS))}\n")
    assert text.endswith(f"{describe.END}\nafter\n")
    assert "\nold\n" not in text


def test_a_page_without_marks_is_left_alone(tmp_path, capsys):
    (tmp_path / "page.md").write_text("nothing")
    with pytest.raises(ClientError, match="no marks"):
        describe.with_reference("nothing")
    assert describe.main(["--page", str(tmp_path / "page.md")]) == 1
    assert (tmp_path / "page.md").read_text() == "nothing"


def test_every_command_is_a_class_that_openstack_can_load():
    for line in describe.entry_points()["openstack.sluice.v1"]:
        name, _, place = line.partition(" = ")
        module, _, attribute = place.partition(":")
        loaded = getattr(import_module(module), attribute)
        assert issubclass(loaded, Command)
        assert COMMANDS[name.removeprefix("sluice_").replace("_", " ")] is loaded
