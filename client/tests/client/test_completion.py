"""``sluice complete``: real shells propose words and options of commands."""

import shutil
import subprocess

import pytest

from sluice_client.cli import main
from sluice_client.commands import COMMANDS, EARLIER

#: Requests candidates from each shell: the script is in $1, the typed words are the arguments behind it.
ASK = {
    "bash": """
        source "$1"; shift
        COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1))
        _sluice
        printf '%s\\n' "${COMPREPLY[@]}"
    """,
    "zsh": """
        compdef() { : }
        compadd() { shift; for one in "$@"; do [[ $one == ${words[CURRENT]}* ]] && print -r -- $one; done }
        _files() { : }
        source "$1"; shift
        words=("$@"); CURRENT=$#
        _sluice
    """,
    "fish": """
        source $argv[1]
        complete --do-complete "$argv[2..-1]"
    """,
}
#: Typed words, of which the last is incomplete → some candidates, and some words that are none.
TYPED = {
    "the first word": (["sluice", "pol"], {"policy"}, {"placement", "check"}),
    "a second word": (["sluice", "policy", "l"], {"list"}, {"show", "check"}),
    "every second word": (["sluice", "bw", ""], {"flow", "list", "set", "unset"}, {"flows", "clear", "policy"}),
    "a third word": (["sluice", "volume", "pool", "m"], {"measure"}, {"list"}),
    "an option of a command": (["sluice", "policy", "list", "--st"], {"--state"}, {"--text", "--url"}),
    "an option behind a value": (["sluice", "policy", "create", "x", "--w"], {"--wait"}, {"--keep"}),
    "an option of sluice": (["sluice", "--os"], {"--os-cloud"}, {"--url", "--state"}),
    "a word behind an option": (["sluice", "--os-cloud", "acme", "policy", "l"], {"list"}, {"policy"}),
}


@pytest.fixture(params=ASK)
def propose(request, capsys, tmp_path):
    """A function that returns a shell's proposals for words."""
    shell = request.param
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    assert main(["complete", "--shell", shell]) == 0
    script = tmp_path / "script"
    script.write_text(capsys.readouterr().out)
    options = {"bash": ["--norc", "--noprofile"], "zsh": ["-f"], "fish": ["--no-config"]}[shell]

    def ask(words):
        named = [shell, *options, "-c", ASK[shell], *([] if shell == "fish" else [shell]), str(script)]
        done = subprocess.run([*named, *words], capture_output=True, text=True, timeout=60, cwd=tmp_path)
        assert done.stderr == ""
        return {line.partition("\t")[0] for line in done.stdout.splitlines()}

    return ask


@pytest.mark.parametrize("name", TYPED)
def test_words_and_options_are_proposed(propose, name):
    words, some, others = TYPED[name]
    found = propose(words)
    assert some <= found
    assert not others & found


def test_a_file_may_follow_a_command(propose, tmp_path):
    (tmp_path / "rot13.py").touch()
    assert not [word for word in propose(["sluice", "filter", "upload", "rot13", ""]) if word.startswith("-")]


def test_no_earlier_words_are_proposed(capsys):
    main(["complete", "--shell", "zsh"])
    rows = capsys.readouterr().out.splitlines()
    keys = {row.strip().removeprefix("'").partition("'")[0].removeprefix("sluice ") for row in rows}
    assert set(COMMANDS) - {words for words in COMMANDS if " " not in words} <= keys
    things = {words.rpartition(" ")[0] for words in COMMANDS}
    assert not (EARLIER.keys() - things) & keys
