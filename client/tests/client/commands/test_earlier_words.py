"""Earlier words of commands: they work with a warning, and help omits them."""

import json
import shlex

import pytest
from cliff.commandmanager import CommandManager
from docs.generated.commands import entry_points

from sluice_client.command_base.command import REMOVED_IN
from sluice_client.commands import COMMANDS, EARLIER

GONE = {"error": {"code": 404, "title": "Not Found", "message": "there is no such thing", "problems": []}}


def warning(words):
    return f"sluice: `{words}` is now `{EARLIER[words].words}`; the old words work until {REMOVED_IN}\n"


@pytest.mark.parametrize("words", EARLIER)
def test_earlier_words_do_what_the_new_ones_do_and_warn(sluice, stub, words, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "cluster.yaml").write_text("{}")
    (tmp_path / "rot13.json").write_text("{}")
    for _ in range(9):
        stub.enqueue(404, GONE)
    given = shlex.split(EARLIER[words].examples[0].partition(">")[0])
    said = sluice(*words.split(), *given, status=1, start=["--url", stub.url])
    assert said.err.startswith(warning(words))
    assert "there is no such thing (HTTP 404)" in said.err
    sent = stub.paths
    if words != "filter register":  # has arguments of its own
        again = sluice(*EARLIER[words].words.split(), *given, status=1, start=["--url", stub.url])
        assert again.err == said.err.removeprefix(warning(words))
        assert stub.paths == sent * 2


def test_no_words_are_earlier_ones_and_new_ones():
    assert not EARLIER.keys() & COMMANDS.keys()
    assert {command.words for command in EARLIER.values()} <= COMMANDS.keys()


def test_what_was_registered_by_a_file_still_can_be(sluice, tmp_path):
    described = {"keyword": "murmur", "environment": "wasm", "language": "wasm"}
    (tmp_path / "f.json").write_text(json.dumps(described))
    assert "murmur" in sluice("filter", "register", str(tmp_path / "f.json")).out
    assert sluice("filter", "unregister", "murmur").out == "filter murmur is deleted\n"


@pytest.mark.parametrize("begin", [[], ["policy"], ["bw"], ["volume", "pool"]])
def test_no_help_shows_earlier_words(sluice, begin):
    lines = sluice(*begin, "--help").out.splitlines()
    shown = {line[2:].partition("  ")[0] for line in lines if line.startswith("  ")}
    assert shown & COMMANDS.keys()
    assert not shown & EARLIER.keys()


def test_a_slip_is_not_answered_with_earlier_words(sluice):
    for said in (sluice("bw", "flowers", status=2).err, sluice("bw", "flowers", "--help", status=2).err):
        shown = {line[2:].partition("  ")[0] for line in said.splitlines()[1:]}
        assert "bw flow list" in shown
        assert not shown & EARLIER.keys()


@pytest.fixture(scope="module")
def manager():
    """The commands of ``openstack``, by their entry points."""
    made = CommandManager("nothing.of.this.name")
    for line in entry_points()["openstack.sluice.v1"]:
        name = line.partition(" = ")[0].replace("_", " ")
        words = name.strip().removeprefix("sluice ")
        made.add_command(name, EARLIER[words] if name.startswith(" ") else COMMANDS[words])
    return made


@pytest.mark.parametrize("words", [*EARLIER, *COMMANDS])
def test_openstack_finds_all_words(manager, words):
    command, _, rest = manager.find_command(["sluice", *words.split(), "--long"])
    assert (command, rest) == ({**EARLIER, **COMMANDS}[words], ["--long"])


def test_openstack_warns_and_lists_no_earlier_words(openstack, api):
    known = {"OS_AUTH_TYPE": "none", "OS_ENDPOINT": api.url, "SLUICE_TOKEN_FILE": str(api.token)}
    said = openstack("sluice", "policy", "undo", "nope", status=1, env=known).stderr
    assert said.startswith(warning("policy undo"))
    listed = set(map(str.strip, openstack("sluice", "--help").stdout.splitlines()))
    assert {f"sluice {words}" for words in COMMANDS} <= listed
    assert not {f"sluice {words}" for words in EARLIER} & listed
