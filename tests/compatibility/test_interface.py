"""The interface for clients, administrators and other versions is the recorded one.

A difference is a bug in the change, unless it is intended: then ``interface.collect`` records it again, and a
release note describes it.
"""

import difflib
import json

import pytest
from tests.compatibility.interface import collect

RECORDED = collect.recorded()


def differences(before, now):
    """The first lines that differ."""
    texts = (
        value.splitlines() if isinstance(value, str) else json.dumps(value, indent=1, sort_keys=True).splitlines()
        for value in (before, now)
    )
    return "\n".join(list(difflib.unified_diff(*texts, "recorded", "now", lineterm="", n=1))[:40])


@pytest.mark.parametrize("what", ["schema", "samples", "commands", "messages"])
def test_it_is_what_was_recorded(what):
    assert differences(RECORDED[what], getattr(collect, f"collect_{what}")()) == ""


@pytest.mark.parametrize("method", sorted(RECORDED["client"]))
def test_a_method_of_the_client_takes_and_sends_the_same(method, calls):
    assert differences(RECORDED["client"][method], calls[method]) == ""


@pytest.fixture(scope="module")
def calls():
    """The calls as the record has them: with lists for tuples."""
    return json.loads(json.dumps(collect.collect_client_calls()))


def test_the_same_programs_are_there():
    assert collect.programs().keys() == RECORDED["help"].keys()


@pytest.mark.parametrize("name", sorted(RECORDED["help"]))
def test_a_program_has_the_same_help(name):
    assert differences(RECORDED["help"][name], collect.collect_help(collect.programs()[name])) == ""


@pytest.fixture(scope="module")
def texts():
    return collect.collect_texts()


def test_every_sentence_that_somebody_is_shown_is_still_there(texts):
    assert sorted(set(RECORDED["texts"]["sentences"]) - set(texts["sentences"])) == []


@pytest.mark.parametrize("what", ["headers", "keys"])
def test_the_same_names_are_stored_and_sent(texts, what):
    assert sorted(set(RECORDED["texts"][what]) ^ set(texts[what])) == []
