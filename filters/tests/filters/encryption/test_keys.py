"""Rings of keys: the file, its faults, its command, and castellan."""

from __future__ import annotations

import base64
import json
import logging
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from sluice_core.errors import CallerError
from sluice_filters.encryption import cli
from sluice_filters.encryption.keys.key_file import KeyFile
from sluice_filters.encryption.keys.options import open_keys
from sluice_filters.key_ring import MissingKey, NoKeys, is_key_id

ONE, TWO = b"1" * 32, b"2" * 32


def text(secret):
    return base64.b64encode(secret).decode()


def write(path, data, mode=0o600):
    """Replace the file by rename, as an operator should."""
    new = path.with_suffix(".new")
    new.write_text(data if isinstance(data, str) else json.dumps(data))
    new.chmod(mode)
    new.rename(path)


class Clock:
    now = 100.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def path(tmp_path):
    found = tmp_path / "keys.json"
    write(found, {"active": "k1", "keys": {"k1": text(ONE), "k2": text(TWO)}})
    return found


@pytest.fixture
def ring(path, clock):
    return KeyFile(path, clock)


def test_a_key_file_lends_its_keys(ring):
    assert (ring.active(), ring.secret("k1"), ring.secret("k2")) == ("k1", ONE, TWO)
    assert ring.identifiers() == ("k1", "k2")
    assert ring.problem == ""


def test_a_key_that_is_not_there_is_named(ring, path):
    with pytest.raises(MissingKey, match=f"no key `k3` in key file `{path}`$"):
        ring.secret("k3")


def test_no_active_key_is_said_so(path, clock):
    write(path, {"active": "", "keys": {"k1": text(ONE)}})
    with pytest.raises(MissingKey, match="no active key"):
        KeyFile(path, clock).active()


def test_a_changed_file_is_read_within_a_second_and_not_looked_at_more_often(ring, path, clock, monkeypatch):
    assert ring.active() == "k1"
    looks = []
    stat = os.stat
    monkeypatch.setattr(os, "stat", lambda *args, **more: looks.append(args) or stat(*args, **more))
    write(path, {"active": "k2", "keys": {"k2": text(TWO)}})
    looks.clear()
    clock.now += 0.9
    assert (ring.active(), len(looks)) == ("k1", 0)
    clock.now += 0.1
    assert (ring.active(), len(looks)) == ("k2", 1)
    with pytest.raises(MissingKey):
        ring.secret("k1")


def test_a_key_that_is_missing_is_looked_for_at_once(ring, path):
    """Another node may have written with a key that arrived here a moment ago."""
    assert ring.active() == "k1"
    write(path, {"active": "k1", "keys": {"k1": text(ONE), "k3": text(TWO)}})
    assert ring.secret("k3") == TWO


BROKEN = [
    ("{", 0o600, "not JSON"),
    ("[]", 0o600, "expected `{"),
    ({"active": "k1"}, 0o600, "expected `{"),
    ({"active": "k9", "keys": {}}, 0o600, "active key `k9` is not among the keys"),
    ({"active": "k1", "keys": {"k1": text(b"short")}}, 0o600, "key `k1` has `5` bytes, expected 32"),
    ({"active": "k1", "keys": {"k1": "not base64 at all"}}, 0o600, "key `k1` is not base64"),
    ({"active": "k1", "keys": {"k1": None}}, 0o600, "key `k1` is not base64"),
    ({"active": "a b", "keys": {"a b": text(ONE)}}, 0o600, "`a b` is no identifier"),
    ({"active": "k1", "keys": {"k1": text(ONE)}}, 0o640, "readable or writable by others \\(mode 0640\\)"),
    ({"active": "k1", "keys": {"k1": text(ONE)}}, 0o604, "expected 0600"),
]


@pytest.mark.parametrize(("data", "mode", "words"), BROKEN)
def test_a_file_that_is_broken_lends_nothing_and_says_why(path, clock, data, mode, words):
    write(path, data, mode)
    ring = KeyFile(path, clock)
    with pytest.raises(MissingKey, match=words):
        ring.active()
    with pytest.raises(MissingKey, match=words):
        ring.secret("k1")


@pytest.mark.parametrize(("data", "mode", "words"), BROKEN)
def test_a_broken_rewrite_leaves_the_last_good_keys_and_is_reported_once(ring, path, clock, caplog, data, mode, words):
    assert ring.active() == "k1"
    write(path, data, mode)
    for _ in range(3):
        clock.now += 1
        assert (ring.active(), ring.secret("k2")) == ("k1", TWO)
    assert len([one for one in caplog.records if one.levelno == logging.ERROR]) == 1
    write(path, {"active": "k2", "keys": {"k2": text(TWO)}})
    clock.now += 1
    assert (ring.active(), ring.problem) == ("k2", "")


def test_a_file_that_vanished_leaves_its_keys_and_one_that_appears_is_read(path, clock):
    path.rename(path.with_name("away"))
    ring = KeyFile(path, clock)
    with pytest.raises(MissingKey, match="No such file"):
        ring.active()
    path.with_name("away").rename(path)
    clock.now += 1
    assert ring.active() == "k1"
    path.unlink()
    clock.now += 1
    assert ring.active() == "k1"
    assert "No such file" in ring.problem


@pytest.mark.parametrize("make", [os.mkdir, os.mkfifo])
def test_a_key_file_must_be_a_regular_file(tmp_path, clock, make):
    make(tmp_path / "thing")
    ring = KeyFile(tmp_path / "thing", clock)
    with pytest.raises(MissingKey, match=r"not a regular file|Is a directory"):
        ring.active()


def test_secrets_are_neither_logged_nor_shown(ring, path, clock, caplog):
    caplog.set_level(logging.DEBUG)
    ring.active()
    write(path, json.dumps({"active": "k1", "keys": {"k1": text(ONE) + "="}}))
    clock.now += 1
    ring.active()
    assert ring.problem
    shown = [repr(ring), repr(vars(ring)), ring.problem, caplog.text]
    assert not [one for one in shown if text(ONE)[:-1] in one or "111111" in one]


@pytest.mark.parametrize(
    ("word", "fits"),
    [("k1", True), ("2026-11-21", True), ("a" * 65, False), ("", False), ("a b", False), ("k\n", False)],
)
def test_identifiers_are_plain_words(word, fits):
    assert is_key_id(word) is fits


# The key sources of a host's options


def test_options_name_a_key_file(path):
    assert open_keys({"key_file": str(path)}).active() == "k1"
    assert open_keys({"sluice_key_file": str(path), "key_file": "x"}, "sluice_").active() == "k1"
    assert isinstance(open_keys({"key_file": ""}), NoKeys)


def test_a_broken_key_file_is_logged_at_start_and_does_not_stop_the_host(tmp_path, caplog):
    ring = open_keys({"key_file": str(tmp_path / "none")})
    assert "No such file" in caplog.text
    with pytest.raises(MissingKey):
        ring.active()


def test_two_sources_are_refused():
    with pytest.raises(CallerError, match="expected one of them"):
        open_keys({"key_file": "a", "key_manager_conf": "b"})


# The command


def run(path, *words):
    return cli.main(["--file", str(path), *words])


@pytest.fixture
def new(tmp_path):
    return tmp_path / "new.json"


def test_a_ring_is_made_rotated_and_cleaned_up(new, capsys):
    assert run(new, "init", "2025") == 0
    assert new.stat().st_mode & 0o777 == 0o600
    ring = KeyFile(new, clock := Clock())
    first = ring.secret("2025")
    assert ring.active() == "2025"
    assert run(new, "add", "2026") == 0
    clock.now += 1
    assert (ring.active(), ring.identifiers()) == ("2025", ("2025", "2026"))
    assert run(new, "activate", "2026") == 0
    clock.now += 1
    assert (ring.active(), ring.secret("2025")) == ("2026", first)
    assert run(new, "remove", "2025", "--yes") == 0
    assert "cannot be read any more" in capsys.readouterr().out
    clock.now += 1
    assert ring.identifiers() == ("2026",)
    assert [one.name for one in new.parent.iterdir()] == [new.name]


def test_the_commands_of_the_page_work_in_their_order(new):
    page = (Path(__file__).parents[4] / "docs" / "admin" / "encryption.md").read_text(encoding="utf-8")
    commands = [words.partition("#")[0].split() for words in re.findall(r"(?:^|`)sluice-keys ([^`\n]*)", page, re.M)]
    assert [words[0] for words in commands] == ["init", "list", "add", "list", "activate", "remove"]
    first, *others = commands
    assert run(new, *first, "2025") == 0  # by default it is named after the day
    for words in others:
        assert run(new, *words) == 0
    assert KeyFile(new).identifiers() == ("2027",)


def test_add_may_activate_at_once_and_names_keys_by_the_day(new):
    assert run(new, "init", "old") == 0
    assert run(new, "add", "--activate") == 0
    assert KeyFile(new).active().startswith("20")


def test_list_shows_checks_of_keys_and_no_secret(path, capsys):
    assert run(path, "list") == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == ["k1", "k2"]
    assert lines[0].endswith("active")
    checks = [line.split()[2] for line in lines]
    assert len(set(checks)) == 2
    assert not [check for check in checks if bytes.fromhex(check) in ONE + TWO]


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["init"], "is there already: expected `add`"),
        (["add", "k1"], "key `k1` is there already"),
        (["add", "a b"], "`a b` is no identifier"),
        (["activate", "k3"], "no key `k3`, expected one of k1, k2"),
        (["remove", "k1", "--yes"], "key `k1` is active"),
        (["remove", "k2"], "become unreadable for ever"),
        (["remove", "k3", "--yes"], "no key `k3`"),
    ],
)
def test_harmful_key_commands_are_refused_and_change_nothing(path, capsys, words, reason):
    before = path.read_bytes()
    assert run(path, *words) == 1
    assert reason in capsys.readouterr().err
    assert path.read_bytes() == before
    assert [one.name for one in path.parent.iterdir()] == [path.name]


@pytest.mark.parametrize("words", [["list"], ["add"], ["activate", "k1"]])
def test_a_file_that_cannot_be_used_is_refused(new, path, capsys, words):
    assert run(new, *words) == 1
    assert capsys.readouterr().err == f"sluice-keys: `{new}`: No such file or directory\n"
    path.chmod(0o644)
    assert run(path, *words) == 1
    assert "mode 0644" in capsys.readouterr().err


def test_a_rewrite_that_fails_leaves_the_old_file(path, capsys, monkeypatch):
    before = path.read_bytes()

    def fail(*args):
        raise OSError("no space left")

    monkeypatch.setattr(os, "replace", fail)
    assert run(path, "add", "k3") == 1
    assert "no space left" in capsys.readouterr().err
    assert path.read_bytes() == before
    assert [one.name for one in path.parent.iterdir()] == [path.name]


def test_a_folder_that_is_missing_is_named(tmp_path, capsys):
    assert run(tmp_path / "none" / "keys.json", "init") == 1
    assert capsys.readouterr().err == f"sluice-keys: `{tmp_path / 'none'}`: No such file or directory\n"


def test_a_link_to_a_key_file_stays_a_link(path, tmp_path):
    link = tmp_path / "link.json"
    link.symlink_to(path)
    assert run(link, "add", "k3") == 0
    assert link.is_symlink()
    assert KeyFile(path).identifiers() == ("k1", "k2", "k3")


def test_a_key_file_does_not_import_castellan(path):
    """Castellan is imported when it is configured, pyarrow when CSV is read."""
    code = (
        "import sys; from sluice_filters.registry import load_filters\n"
        "from sluice_filters.encryption.keys.options import open_keys\n"
        f"open_keys({{'key_file': {str(path)!r}}}).active(); load_filters()\n"
        "print(sorted({'castellan', 'oslo_config', 'pyarrow'} & set(sys.modules)))"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout == "[]\n"
