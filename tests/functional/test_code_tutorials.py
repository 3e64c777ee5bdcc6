"""docs/tutorials/first-filter.md and first-metric.md on a cluster: their files, commands and shown output."""

import re
import subprocess
import tempfile
from pathlib import Path

import pytest

from sluice_aio.base.layout import Layout
from sluice_aio.cluster.cluster import Cluster
from sluice_aio.play import write_playrc

TUTORIALS = Path(__file__).parents[2] / "docs" / "tutorials"
#: Printed before the output of a block of commands.
MARK = "---"


def page_of(name):
    return (TUTORIALS / f"{name}.md").read_text(encoding="utf-8")


def files_of(page):
    """Name → content of each file that a reader saves."""
    return dict(re.findall(r"Save this as `(\S+)`[^\n]*:\n\n```python\n(.*?)```", page, re.DOTALL))


def blocks_of(page):
    """The input and the shown output (None: none) of each block that is run here."""
    comment = f"<!-- tested by: tests/functional/{Path(__file__).name} -->"
    return [
        (text, None) if language == "sh" else typed_and_shown(text)
        for language, text in re.findall(rf"{comment}\n```(sh|console)\n(.*?)```", page, re.DOTALL)
    ]


def typed_and_shown(text):
    lines = text.splitlines(keepends=True)
    typed = "".join(line[2:] for line in lines if line.startswith("$ "))
    return typed, "".join(line for line in lines if not line.startswith("$ "))


@pytest.fixture(scope="module")
def place():
    """A folder in which `.sluice` is the folder of a running cluster."""
    with tempfile.TemporaryDirectory(prefix="sluice-") as folder, Cluster(Layout.free(Path(folder, "c"))) as running:
        write_playrc(running.layout)
        work = Path(folder, "w")
        work.mkdir()
        (work / ".sluice").symlink_to(running.layout.root)
        yield work


@pytest.mark.parametrize(
    ("name", "saved", "count"),
    [
        ("first-filter", {"rot13.py", "test_rot13.py"}, 9),
        ("first-metric", {"deletes_sec.py", "test_deletes_sec.py"}, 4),
    ],
)
def test_every_command_works_and_prints_what_the_page_shows(place, name, saved, count):
    page = page_of(name)
    files, blocks = files_of(page), blocks_of(page)
    assert (set(files), len(blocks)) == (saved, count)
    for file, text in files.items():
        (place / file).write_text(text, encoding="utf-8")
    typed = "".join(f"echo {MARK}\n{commands}" for commands, _ in blocks)
    script = f"set -euo pipefail\n. .sluice/playrc\n{typed}"
    ended = subprocess.run(["bash", "-c", script], cwd=place, capture_output=True, text=True, check=False, timeout=300)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    printed = ended.stdout.split(f"{MARK}\n")[1:]
    for (commands, shown), output in zip(blocks, printed, strict=True):
        assert shown in (None, output), commands
        assert ("|| echo refused" in commands) == output.endswith("refused\n"), commands
