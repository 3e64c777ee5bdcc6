"""The documentation and the packaging say what the table of commands says."""

import configparser
from importlib import import_module
from pathlib import Path

import pytest
from cliff.command import Command

from sluice_client import describe
from sluice_client.commands import COMMANDS
from sluice_client.errors import ClientError

ROOT = Path(__file__).resolve().parents[2]


def test_the_page_shows_the_commands_as_they_are():
    page = (ROOT / "docs" / "client.md").read_text()
    assert page == describe.with_reference(page), "run `python -m sluice_client.describe`"


def test_a_page_is_renewed_between_its_marks_and_nowhere_else(tmp_path):
    page = tmp_path / "page.md"
    page.write_text(f"before\n{describe.BEGIN}\nold\n{describe.END}\nafter\n")
    assert describe.main(["--page", str(page)]) == 0
    text = page.read_text()
    assert text.startswith(f"before\n{describe.BEGIN}\n\n### policy create")
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


def test_setup_cfg_declares_every_command():
    setup = configparser.ConfigParser(interpolation=None)
    setup.read(ROOT / "setup.cfg")
    for group, lines in describe.entry_points().items():
        declared = [line for line in setup["options.entry_points"][group].splitlines() if line]
        assert declared == lines, "paste what `python -m sluice_client.describe --entry-points` prints"
