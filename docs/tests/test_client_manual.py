"""The documentation and the packaging agree with the table of commands."""

import shlex
from importlib.metadata import EntryPoint

import pytest
from cliff.app import App
from cliff.command import Command
from cliff.commandmanager import CommandManager
from docs.generated import commands, manual

from sluice_client.commands import COMMANDS, EARLIER


def test_each_command_is_on_one_page_of_the_reference():
    shown = [line[3:] for page in commands.pages().values() for line in page.splitlines() if line.startswith("## ")]
    assert sorted(shown) == sorted(COMMANDS)


@pytest.mark.parametrize("name", ["sluice.1", "openstack-sluice.1"])
def test_the_manual_has_every_command(name):
    shown = manual.pages()[name]
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
    """The words that the command gets: all that a shell does not interpret."""
    found = shlex.split(example)
    return found[: next((place for place, word in enumerate(found) if word in ("<", ">")), len(found))]


@pytest.mark.parametrize("words", COMMANDS)
def test_examples_are_command_lines_that_are_understood(words):
    command = COMMANDS[words]
    parser = command(App("test", "0", CommandManager("test.nothing")), None).get_parser(f"sluice {words}")
    assert command.examples
    for example in command.examples:
        parser.parse_args(words_of(example))
        assert f"\n  {f'sluice {words} {example}'.rstrip()}\n" in parser.format_help() + "\n"


def test_every_command_is_a_class_that_openstack_can_load():
    for line in commands.entry_points()["openstack.sluice.v1"]:
        name, _, place = line.partition(" = ")
        loaded = EntryPoint(name, place, "openstack.sluice.v1").load()
        assert issubclass(loaded, Command)
        known = EARLIER if name.startswith("_") else COMMANDS
        assert known[name.lstrip("_").removeprefix("sluice_").replace("_", " ")] is loaded
