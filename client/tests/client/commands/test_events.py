"""``event list``: its output, and how it follows the log until it is interrupted.

The commands of docs/admin/events.md and docs/admin/upgrade.md are tested here.
"""

import json
import signal
import subprocess
import sys

import pytest

from sluice_client import ApiError, Unreachable
from sluice_client.commands.events import follow_pages
from sluice_core.messages.events import ERROR, INFO, NODE_AWAY, NODE_WELL, Event


@pytest.fixture
def log(store):
    """A function that logs an event about a node."""

    def append(node, severity=ERROR):
        kind = NODE_AWAY if severity == ERROR else NODE_WELL
        store.append_events([Event(1.0, severity, kind, f"node `{node}`\nis {severity}", node, node=node)])

    return append


def test_lines_of_json_are_what_the_controller_answers(sluice, client, log):
    log("n1")
    log("n2", INFO)
    found = [json.loads(line) for line in sluice("event", "list", "-f", "jsonl").out.splitlines()]
    assert found == list(client.events())
    assert [one["node"] for one in found] == ["n1", "n2"]


def test_options_narrow_the_list(sluice, log):
    log("n1")
    log("n2", INFO)

    def nodes(*words):
        return [one["Node"] for one in json.loads(sluice("event", "list", *words, "--long", "-f", "json").out)]

    assert nodes("--severity", "error") == ["n1"]
    assert nodes("--node", "n2") == ["n2"]
    assert nodes("--policy", "p1") == []
    assert nodes("--since", "9999999999") == []
    assert "expected a time" in sluice("event", "list", "--since", "yesterday", status=1).err


@pytest.mark.parametrize("words", [[], ["-f", "jsonl"]], ids=["text", "lines"])
def test_following_goes_on_until_it_is_interrupted(api, log, words):
    log("n1")
    begin = [sys.executable, "-m", "sluice_client", "--url", api.url, "--token-file", str(api.token)]
    argv = [*begin, "event", "list", "--follow", *words]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as following:
        for node in ("n1", "n2"):
            line = following.stdout.readline()
            if words:
                assert json.loads(line)["node"] == node
            else:
                assert line == f"1970-01-01T00:00:01.000Z error   node_away: node `{node}` is error\n"
            log("n2")
        following.send_signal(signal.SIGINT)
        try:
            out, err = following.communicate(timeout=20)
        finally:
            following.kill()
    assert (following.returncode, err) == (130, "")
    assert out == "" or "n2" in out, "what was logged after that may have come, too"


#: Ctrl-C within ``HTTPResponse.__init__``, whose ``close`` misses attributes that are set at its end.
HALF_MADE = """
class HalfMade:
    def __init__(self):
        os.kill(os.getpid(), signal.SIGINT)
        while True:
            pass

    def __del__(self):
        raise AttributeError("fp")

Client.event_page = lambda *given, **wanted: HalfMade()
"""
#: Ctrl-C while an object is collected, in which exceptions are dropped.
COLLECTED = """
class Collected:
    def __del__(self):
        os.kill(os.getpid(), signal.SIGINT)
        while True:
            pass

def event_page(*given, **wanted):
    Collected()
    while True:
        pass

Client.event_page = event_page
"""
BEGIN = """
import os, signal, sys
from sluice_client.cli import main
from sluice_client.rest.client import Client
"""


@pytest.mark.parametrize("at", [HALF_MADE, COLLECTED], ids=["half made", "collected"])
def test_an_interrupt_at_an_odd_moment_ends_it_and_says_nothing(api, at):
    begin = [sys.executable, "-c", f"{BEGIN}{at}\nsys.exit(main())", "--url", api.url, "--token-file", str(api.token)]
    done = subprocess.run([*begin, "event", "list", "--follow"], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")


def test_a_format_that_has_an_end_is_refused_when_following(sluice):
    assert "expected `-f jsonl`, or no -f" in sluice("event", "list", "--follow", "-f", "csv", status=1).err


class Pages:
    """Answers from a script, in which errors are raised; keeps the requested cursors."""

    def __init__(self, *answers):
        self.answers = list(answers)
        self.cursors = []

    def __call__(self, since):
        self.cursors.append(since)
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        names, last = answer
        return {"events": names, "last": last}


def test_a_controller_that_is_away_for_a_moment_is_asked_again_from_the_same_place():
    pages = Pages((["a"], "1-0"), Unreachable("nobody there"), ApiError(503, "redis is away"), (["b"], "2-0"))
    said, pauses = [], []
    found = follow_pages(pages, "events", "", said.append, pauses.append)
    assert [next(found), next(found)] == ["a", "b"]
    assert pages.cursors == ["", "1-0", "1-0", "1-0"]
    assert said == ["nobody there; trying again", "the controller answers again"]
    assert pauses == [0.5, 1.0]


def test_a_controller_that_refuses_ends_it():
    with pytest.raises(ApiError, match="not allowed"):
        next(follow_pages(Pages(ApiError(403, "not allowed")), "events", "", print))


def test_empty_pages_that_were_not_waited_for_do_not_follow_each_other_at_once():
    pauses = []
    pages = Pages(([], "5-0"), ([], "6-0"), (["a"], "7-0"))
    assert next(follow_pages(pages, "events", "5-0", print, pauses.append)) == "a"
    assert pages.cursors == ["5-0", "5-0", "6-0"]
    assert pauses == [1.0, 1.0]
