"""A target is a path, or the words behind FOR in a sentence, in every command with a target."""

import argparse

import pytest

from sluice_client.command_base.targets import sentence_target, target_path

PATHS = {
    "acme/m": "acme/m",
    "CONTAINER acme/m": "acme/m",
    "container  acme/m": "acme/m",
    'CONTAINER "acme/m x"': "acme/m x",
    "TENANT acme": "acme",
    "OBJECT acme/m/a/b": "acme/m/a/b",
    "CLUSTER": "CLUSTER",
    "TENANT": "TENANT",
    "a b": "a b",
    "": "",
}


@pytest.mark.parametrize("text", PATHS)
def test_a_path_is_what_is_left_of_a_target(text):
    assert target_path(text) == PATHS[text]


@pytest.mark.parametrize(
    "text", ["CONTAINER acme", "TENANT acme/m", "OBJECT acme/m", "CONTAINER acme/", "CONTAINER a/b/c"]
)
def test_a_path_that_does_not_fit_its_word_is_refused(text):
    with pytest.raises(argparse.ArgumentTypeError, match="is no target, expected"):
        target_path(text)


SENTENCES = {
    "acme": "acme",
    "acme/m": "CONTAINER acme/m",
    "acme/m/o/p": "OBJECT acme/m/o/p",
    "CONTAINER acme/m": "CONTAINER acme/m",
    "ALL CONTAINERS": "ALL CONTAINERS",
    "GROUP a/b": "GROUP a/b",
}


@pytest.mark.parametrize("text", SENTENCES)
def test_a_sentence_says_the_level_of_a_path(text):
    assert sentence_target(text) == SENTENCES[text]


SPACE = ["/spaces/acme%2Fm"]
ORDERED = {
    "space show": (["space", "show"], SPACE),
    "filter deployment list": (["filter", "deployment", "list"], ["/filters/acme%2Fm/deploy"]),
    "motif list": (["motif", "list"], ["/motifs?account=acme&container=m"]),
    "effective policy show": (["effective", "policy", "show"], ["/effective?target=acme%2Fm"]),
}


@pytest.mark.parametrize("target", ["acme/m", "CONTAINER acme/m"])
@pytest.mark.parametrize("name", ORDERED)
def test_commands_take_both(sluice, stub, name, target):
    words, paths = ORDERED[name]
    stub.enqueue(404, {"error": {"code": 404, "title": "", "message": "none", "problems": []}})
    sluice(*words, target, status=1, start=["--url", stub.url])
    assert stub.paths == paths
