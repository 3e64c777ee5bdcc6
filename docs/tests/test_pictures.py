"""Pictures: each is shown by a page, with an alternative text, and is made by a program."""

import re
import subprocess
from pathlib import Path

import pytest
from benchmarks.paint import PAINTERS
from docs.pictures.take import PICTURES

ROOT = Path(__file__).parents[2]
FOLDERS = ("docs/pictures", "benchmarks/pictures")
SHOWN = re.compile(r"!\[([^\]]*)\]\(([^)]+)\)")
#: Words of the shortest alternative text.
LEAST = 5


def tracked(*patterns):
    answer = subprocess.run(["git", "ls-files", "-z", *patterns], cwd=ROOT, capture_output=True, check=True, text=True)
    return [ROOT / name for name in answer.stdout.split("\0") if name]


def shown():
    """Picture → the alternative texts in pages."""
    found = {}
    for page in tracked("*.md"):
        for text, target in SHOWN.findall(page.read_text(encoding="utf-8")):
            if "://" not in target:
                found.setdefault((page.parent / target).resolve(), []).append(text)
    return found


def test_each_picture_is_shown_by_a_page_and_each_shown_one_is_there():
    pictures = set(tracked(*(f"{folder}/*.png" for folder in FOLDERS)))
    assert len(pictures) > 12
    assert sorted(pictures - shown().keys()) == []
    assert sorted(picture for picture in shown() if not picture.exists()) == []


def test_the_text_beside_a_picture_says_what_is_seen():
    terse = [(picture.name, text) for picture, texts in shown().items() for text in texts if len(text.split()) < LEAST]
    assert terse == []


def test_the_pictures_of_the_dashboard_are_those_that_are_taken():
    assert {file.stem for file in tracked("docs/pictures/*.png")} == PICTURES.keys()


def test_each_plot_has_its_painter_or_its_data():
    names = {file.stem for file in tracked("benchmarks/pictures/*.png")}
    data = {file.stem for file in tracked("benchmarks/pictures/*.json")}
    assert names <= PAINTERS.keys() | data
    assert data <= names


@pytest.mark.parametrize("name", sorted(PICTURES))
def test_a_picture_is_as_wide_as_the_others(name):
    from PIL import Image

    with Image.open(ROOT / "docs" / "pictures" / f"{name}.png") as picture:
        assert picture.width == 1000
