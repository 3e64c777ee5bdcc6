"""The first tutorial and the commands of README.md, on a cluster as `make up` starts it."""

import itertools

import pytest
from tests.support.pages import ROOT, Shell, read_page, shell_blocks

from sluice_aio import play

TUTORIAL = shell_blocks(read_page("tutorials/first-policy.md"))
README = shell_blocks((ROOT / "README.md").read_text(encoding="utf-8"))


@pytest.fixture
def shell(cluster, tmp_path):
    """A shell in a clone whose cluster was started: `.sluice` is its folder."""
    (tmp_path / ".sluice").symlink_to(cluster.layout.root)
    playrc = play.write_playrc(cluster.layout)
    with Shell(tmp_path, {}) as started:
        started.run(f". {playrc}")
        yield started


@pytest.fixture
def nothing_left(api, swift):
    """No policy and no object of the pages remains in the cluster."""
    before = {one["id"] for one in api.policies()}
    yield
    for one in api.policies():
        if one["id"] not in before:
            api.delete_policy(one["id"])
    for container in ("books", "busy"):
        if swift.request("HEAD", container).status == 204:
            for row in swift.listing(container):
                swift.request("DELETE", f"{container}/{row['name']}")
            swift.request("DELETE", container)


def test_the_first_policy_compresses_and_the_second_one_follows_the_load(shell, nothing_left):
    assert len(TUTORIAL) >= 6
    for block in TUTORIAL:
        shell.run_block(block)


def test_the_commands_to_play_with_work(shell, nothing_left):
    (block,) = README
    lines = block.script.splitlines()
    assert [line for line in lines if line.startswith("make")] == ["make up", "make status", "make down"]
    for line in itertools.filterfalse(lambda line: line.startswith(("make", ". ")) or not line, lines):
        shell.run(line)
