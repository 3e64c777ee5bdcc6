"""Options with the same meaning everywhere: ``--wait [SECONDS]``, ``--json`` and ``-f``, ``--yes``."""

import io
import json

import pytest

from sluice_client.command_base.arguments import WAIT, WAIT_FOR_END, YES
from sluice_client.commands import COMMANDS

TERM = {"term": "DOCS", "patterns": ["pdf"]}
GONE = {"error": {"code": 404, "title": "", "message": "there is no such thing", "problems": []}}
OPERATION = {
    "id": "o1", "what": "delete", "state": "under_way", "reason": "", "volume": "v1", "project": "p1", "data": {},
    "created_at": "", "ended_at": None, "created_by": "",
}  # fmt: skip


@pytest.fixture
def run(sluice, stub):
    """Runs ``sluice`` against the script."""
    return lambda *words, status=0: sluice(*words, status=status, start=["--url", stub.url])


@pytest.mark.parametrize(
    ("words", "path"),
    [
        (["metric", "start", "X", "--wait", "5"], "/registry/metrics/X/start?wait=5.0"),
        (["metric", "start", "X", "--wait"], "/registry/metrics/X/start?wait=30.0"),
        (["metric", "start", "--wait", "X"], "/registry/metrics/X/start?wait=30.0"),
        (["metric", "start", "--wait", "2", "X"], "/registry/metrics/X/start?wait=2.0"),
        (["metric", "start", "X", "--wait=0.5"], "/registry/metrics/X/start?wait=0.5"),
        (["metric", "start", "X"], "/registry/metrics/X/start"),
        (["placement", "unset", "X", "--wait"], "/placements/X?wait=30.0"),
        (["stereotype", "unapply", "s", "X", "--wait", "3"], "/stereotypes/s/tenants/X?wait=3.0"),
    ],
)
def test_wait_takes_seconds_where_they_are_given(run, stub, words, path):
    stub.enqueue(200, {})
    run(*words)
    assert stub.paths == [path]


def test_a_change_of_a_stereotype_waits(run, stub):
    stub.enqueue(200, {"name": "s", "text": "", "help": ""}, ETag='"1"').enqueue(200, {"name": "s"})
    run("stereotype", "set", "s", "--help-text", "x", "--wait", "4")
    assert stub.paths == ["/stereotypes/s", "/stereotypes/s?wait=4.0"]


def test_a_job_that_takes_longer_than_the_seconds_goes_on_and_is_an_error(run, stub):
    stub.enqueue(202, OPERATION).enqueue(200, OPERATION)
    said = run("volume", "delete", "v1", "--wait", "0.01", status=1)
    assert "`o1` has not ended after 0.01 s, and goes on" in said.err
    assert stub.paths[1] == "/volumes/operations/o1?wait=0.01"


def test_each_command_that_waits_does_it_by_one_of_two_options():
    waits = [one for command in COMMANDS.values() for one in command.accepted() if one.dest == "wait"]
    assert {one.more["nargs"] for one in waits} == {"?"}
    assert {one.more["const"] for one in waits} == {WAIT.more["const"], WAIT_FOR_END.more["const"]}


@pytest.mark.parametrize("words", [["--json", "term", "list"], ["term", "list", "--json"]])
def test_json_may_stand_before_and_behind_the_words(run, stub, words):
    stub.enqueue(200, {"terms": [{**TERM, "more": 1}]})
    assert json.loads(run(*words).out) == [{**TERM, "more": 1}]


def test_what_acts_on_several_names_has_formats(run, stub):
    stub.enqueue(204).enqueue(404, GONE).enqueue(204)
    said = run("term", "delete", "A", "B", "C", "-f", "json", status=1)
    rows = [{"Name": name, "Result": f"term {name} is deleted"} for name in "AC"]
    assert json.loads(said.out) == rows
    assert said.err == "B: there is no such thing (HTTP 404) (Request-ID: req-1)\nsluice: 1 of 3 failed\n"


def test_json_of_several_names_is_each_answer(run, stub):
    stub.enqueue(200, {"a": 1}).enqueue(200, {"b": 2})
    out = run("metric", "start", "X", "Y", "--json").out
    assert out == '{\n  "a": 1\n}\n{\n  "b": 2\n}\n'


class Terminal(io.StringIO):
    """A terminal with input."""

    def isatty(self):
        return True


@pytest.mark.parametrize(("typed", "sent"), [("y\n", 2), ("YES\n", 2), ("n\n", 0), ("\n", 0), ("", 0)])
def test_a_deletion_is_asked_for_on_a_terminal(run, stub, monkeypatch, typed, sent):
    monkeypatch.setattr("sys.stdin", Terminal(typed))
    stub.enqueue(204).enqueue(204)
    said = run("term", "delete", "A", "B", status=0 if sent else 1)
    assert said.err.startswith("delete term A, B? [y/N] ")
    assert ("nothing was changed" in said.err) == (not sent)
    assert len(stub.requests) == sent


def test_yes_asks_nothing(run, stub, monkeypatch):
    monkeypatch.setattr("sys.stdin", Terminal("n\n"))
    stub.enqueue(204)
    assert run("term", "delete", "A", "--yes").err == ""


def test_a_plan_changes_nothing_so_nothing_is_asked(run, stub, monkeypatch):
    monkeypatch.setattr("sys.stdin", Terminal("n\n"))
    stub.enqueue(200, {}).enqueue(200, {})
    assert run("change", "rollback", "4", "--plan").err == ""
    assert "replace the whole configuration by that after change 4? " in run("change", "rollback", "4", status=1).err


def test_all_motifs_are_detached_after_a_question_alone(run, stub, monkeypatch):
    monkeypatch.setattr("sys.stdin", Terminal("n\n"))
    assert "from all objects of acme/c? " in run("motif", "detach", "--all", "acme/c", status=1).err
    assert "from all objects of the cluster? " in run("motif", "detach", "--all", status=1).err
    stub.enqueue(200, {"motifs": []})
    assert run("motif", "detach", "acme/c/o").err == ""


def test_each_deletion_can_be_confirmed_beforehand():
    assert all(YES in command.accepted() for words, command in COMMANDS.items() if words.endswith(" delete"))
