"""The page about motifs in a file system has the numbers and names of the code."""

import re
from pathlib import Path

from sluice_motifs.replacement.registry import BUILT_IN as POLICIES
from sluice_motifs.space.keeper import FILLED, SHARE, WINDOW
from sluice_motifs.templates.registry import BUILT_IN as TEMPLATES
from sluice_motifs_fs.cli import parser
from sluice_motifs_fs.operations.items import WAITING
from sluice_motifs_fs.storage import attributes
from sluice_motifs_fs.storage.attributes import STORED
from sluice_motifs_fs.storage.paths import PRIVATE
from sluice_motifs_fs.storage.tracking import PATIENCE, QUIET

PAGE = (Path(__file__).parents[1] / "admin" / "motif-file-system.md").read_text(encoding="utf-8")


def test_its_numbers_are_those_of_the_code():
    assert (QUIET, PATIENCE) == (2.0, 5.0)
    assert (FILLED, SHARE, WINDOW) == (0.9, 0.01, 300.0)
    assert "for two seconds, at most five seconds" in PAGE
    assert f"{WAITING} requests can wait" in PAGE
    assert f"`{PRIVATE}`" in PAGE


def test_its_names_are_those_of_the_code():
    for policy in POLICIES:
        assert f"`{policy.keyword}`" in PAGE
    for template in TEMPLATES:
        assert f"`{template.info.keyword}`" in PAGE
    for attribute in (
        attributes.MOTIF,
        attributes.STATE,
        attributes.REASON,
        attributes.SPACE,
        STORED,
    ):
        assert f"`{attribute}`" in PAGE
    usage = parser().format_help()
    commands = set(re.findall(r"^\| `(\w+) ", PAGE, re.MULTILINE)) - {"open"}
    assert len(commands) > 3
    assert {command for command in commands if command not in usage} == set()
