"""The command line itself: options, help, exit status, and errors; other tests check the output of resources."""

import json
import os
import subprocess
import sys

import pytest

from sluice_client.cli import main
from sluice_client.commands import COMMANDS, TOPICS, commands_by_topic
from sluice_client.resources import columns

MISSING = {"error": {"code": 404, "title": "Not Found", "message": "there is no policy `zz`", "problems": []}}


@pytest.fixture
def run(capsys):
    """A function that runs ``sluice`` and returns status, output and errors."""

    def go(*words):
        try:
            status = main(words)
        except SystemExit as end:
            status = end.code or 0
        said = capsys.readouterr()
        return status, said.out, said.err

    return go


def test_url_and_token_come_from_the_environment_unless_they_are_given(run, stub, monkeypatch, tmp_path):
    (tmp_path / "token").write_text("secret\n")
    monkeypatch.setenv("SLUICE_URL", stub.url)
    monkeypatch.setenv("SLUICE_TOKEN_FILE", str(tmp_path / "token"))
    stub.enqueue(200, {"terms": []}).enqueue(200, {"terms": []})
    assert run("term", "list")[0] == 0
    assert run("--token-file", "", "term", "list")[0] == 0
    assert [one.headers.get("X-Auth-Token") for one in stub.requests] == ["secret", ""]
    assert run("--url", "http://127.0.0.1:1", "--timeout", "1", "history", "adopt")[0] == 1


def test_a_refusal_goes_to_standard_error_and_ends_with_one(run, stub):
    stub.enqueue(404, MISSING)
    said = "sluice: there is no policy `zz` (HTTP 404) (Request-ID: req-1)\n"
    assert run("--url", stub.url, "policy", "show", "zz") == (1, "", said)


def test_an_unreachable_controller_ends_with_one(run, nobody):
    said = f"sluice: `{nobody}` cannot be reached: [Errno 111] Connection refused\n"
    assert run("--url", nobody, "history", "adopt") == (1, "", said)


@pytest.mark.parametrize("content", [None, b"\xff\xfe"])
def test_a_token_file_that_cannot_be_read_is_named(run, tmp_path, content):
    path = tmp_path / "token"
    if content is not None:
        path.write_bytes(content)
    status, out, err = run("--token-file", str(path), "policy", "list")
    assert (status, out) == (1, "")
    assert err.startswith(f"sluice: the token file `{path}` ")


@pytest.mark.parametrize(
    "words",
    [
        [],
        ["policy"],
        ["policy", "drop"],
        ["nonsense"],
        ["policy", "list", "--state", "on"],
        ["policy", "list", "--nonsense"],
        ["policy", "show"],
        ["policy", "delete"],
        ["filter", "set", "scramble", "--capability", "stage"],
        ["--nonsense", "policy", "list"],
        ["--time", "3", "policy", "list"],
    ],
)
def test_a_wrong_command_line_ends_with_two(run, words):
    status, _, _ = run(*words)
    assert status == 2


#: Typed words → the first line that answers them, and the commands that are listed below it.
UNKNOWN = {
    "no verb": (["policy"], "`policy` is no command, expected one of", "policy"),
    "another verb": (["policy", "drop", "p1"], "`policy drop` is no command, expected one of", "policy"),
    "a slip in the verb": (["policy", "shwo", "p1"], "`policy shwo` is no command, did you mean `policy show`", ""),
    "a slip in the thing": (["polcy", "list"], "`polcy list` is no command, did you mean `policy list`", ""),
    "a slip in the thing alone": (["polcy"], "`polcy` is no command, expected one of", "policy"),
    "a slip in three words": (
        ["volume", "pol", "list"],
        "`volume pol` is no command, did you mean `volume pool list`",
        "",
    ),
    "half a thing": (["volume", "pool"], "`volume pool` is no command, expected one of", "volume pool"),
    "an option instead": (["slo", "--wait", "3"], "`slo` is no command, expected one of", "slo"),
    "nonsense": (["nonsense", "list"], "`nonsense` is no command, see `sluice --help`", ""),
}


@pytest.mark.parametrize("name", UNKNOWN)
def test_a_wrong_word_is_answered_with_what_was_meant_or_what_there_is(run, name):
    words, first, thing = UNKNOWN[name]
    status, out, err = run(*words)
    said, *listed = err.splitlines()
    assert (status, out, said) == (2, "", f"sluice: {first}")
    assert [line[2:28].strip() for line in listed] == [
        one for one in COMMANDS if thing and f"{one} ".startswith(f"{thing} ")
    ]


@pytest.mark.parametrize("name", ["another verb", "a slip in the verb", "a slip in the thing alone", "nonsense"])
def test_help_of_a_wrong_word_is_answered_in_the_same_way(run, name):
    words = UNKNOWN[name][0]
    assert run("help", *words) == run(*words, "--help") == run(*words)


def test_sluice_alone_is_answered_with_its_help(run):
    assert run() == (2, "", run("--help")[1])


@pytest.mark.parametrize("words", COMMANDS)
def test_every_command_has_help(run, words):
    status, out, _ = run(*words.split(), "--help")
    assert status == 0
    assert f"usage: sluice {words}" in out
    assert all(argument.help.split()[0] in out for argument in COMMANDS[words].accepted())


def test_help_of_a_thing_lists_its_commands(run):
    lines = run("policy", "--help")[1].splitlines()
    assert lines[0].split(maxsplit=2) == ["policy", "check", "Check sentences; changes nothing"]
    assert {" ".join(line.split()[:2]) for line in lines} == {
        " ".join(words.split()[:2]) for words in COMMANDS if words.startswith("policy ")
    }


def test_help_of_all_lists_commands_by_topic_with_an_example_of_each_topic(run):
    status, out, _ = run("--help")
    assert status == 0
    usage, *topics = out.split("\n\n")[-len(TOPICS) - 1 :]
    assert "--os-cloud" in usage or "--os-cloud" in out
    for (topic, about), shown in zip(TOPICS.items(), topics, strict=True):
        first, *lines = shown.splitlines()
        assert first.startswith(f"{topic}, such as `sluice {about.introduced_by} ")
        assert [line[2:29].strip() for line in lines] == commands_by_topic()[topic]


def test_every_command_is_in_one_topic(run):
    assert sorted(words for found in commands_by_topic().values() for words in found) == list(COMMANDS)
    assert run("help")[1] == run("--help")[1]


def test_a_command_of_the_same_option_as_ours_keeps_it(run, stub):
    policy = {"state": "active", "enforced": {"nodes": 0, "total": 0, "refused": [], "waiting": [], "away": []}}
    stub.enqueue(200, {"id": "p", **policy})
    status, _, err = run("--url", stub.url, "policy", "show", "p", "--watch", "--timeout", "0")
    assert (status, "not enforced after 0 s: no node has reported" in err) == (1, True)


def test_json_is_what_the_controller_said(run, stub):
    terms = [{"term": "DOCS", "patterns": ["*.pdf"], "what we": "do not know"}]
    stub.enqueue(200, {"terms": terms})
    assert json.loads(run("--url", stub.url, "--json", "term", "list")[1]) == terms


def test_a_column_that_there_is_not_is_answered_with_those_that_there_are(run, stub):
    stub.enqueue(200, {"terms": [{"term": "DOCS", "patterns": ["*.pdf"]}]})
    said = "sluice: there is no column `Trem`, expected `Term`, `Patterns`\n"
    assert run("--url", stub.url, "term", "list", "-c", "Trem") == (1, "", said)


def test_an_empty_list_says_so_beside_the_output(run, stub):
    for _ in range(3):
        stub.enqueue(200, {"terms": []})
    assert run("--url", stub.url, "term", "list") == (0, "", "there is nothing to show\n")
    assert run("--url", stub.url, "term", "list", "-f", "json") == (0, "[]\n", "")
    assert run("--url", stub.url, "term", "list", "-f", "value") == (0, "", "")


@pytest.mark.parametrize(("address", "shown"), [("nonsense", "nonsense"), ("http://me:geheim@[::1/x", "http://[::1/x")])
def test_an_address_that_is_no_url_is_answered_with_one(run, address, shown):
    said = f"sluice: `{shown}` is no URL of an API, expected one like `http://127.0.0.1:8877`\n"
    assert run("--url", address, "term", "list") == (1, "", said)


def test_tracebacks_are_shown_on_demand_only(run, stub):
    stub.enqueue(404, MISSING).enqueue(404, MISSING)
    assert "Traceback" not in run("--url", stub.url, "policy", "show", "zz")[2]
    assert "Traceback" in run("--url", stub.url, "--debug", "policy", "show", "zz")[2]


def test_control_characters_never_reach_the_terminal(run, stub):
    stub.enqueue(200, {"terms": [{"term": "A\x1b[31m\nB\x9b", "patterns": ["\x07日本"]}]})
    out = run("--url", stub.url, "term", "list")[1]
    assert "A [31m B " in out
    assert "日本" in out
    assert not set(out) & set("\x1b\x9b\x07")


def test_a_closed_output_pipe_is_no_error(stub):
    stub.enqueue(200, {"terms": [{"term": "A" * 100, "patterns": []}] * 2000})
    read, write = os.pipe()
    os.close(read)
    argv = [sys.executable, "-m", "sluice_client", "--url", stub.url, "term", "list"]
    done = subprocess.run(argv, stdout=write, stderr=subprocess.PIPE, text=True, timeout=60)
    os.close(write)
    assert (done.returncode, done.stderr) == (141, "")


PLAIN = {
    "nothing": (None, ""),
    "a number": (1.5, "1.5"),
    "a list": (["a", 1], "a, 1"),
    "an object": ({"a": [1, 2], "b": None}, "a=1, 2, b="),
    "a truth": (True, "True"),
}


@pytest.mark.parametrize("name", PLAIN)
def test_any_value_can_be_read(name):
    value, text = PLAIN[name]
    assert columns.to_text(value) == text


def test_milliseconds_are_shown_as_the_controller_shows_times():
    assert columns.iso_time(1_767_225_600_123) == "2026-01-01T00:00:00.123Z"
