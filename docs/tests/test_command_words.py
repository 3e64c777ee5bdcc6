"""Pages and texts of the code use the present words of commands."""

import re
from pathlib import Path

import pytest
from docs.generated.commands import EARLIER_WORDS

from sluice_client.commands import EARLIER

ROOT = Path(__file__).resolve().parents[2]
#: Pages that were true when they were written.
EXEMPT = (ROOT / "docs" / "adr", ROOT / "releasenotes")
PAGES = [
    page
    for pattern in ("*.md", "*/*.md", "docs/**/*.md", "devstack/**/*.md")
    for page in sorted(ROOT.glob(pattern))
    if not any(page.is_relative_to(one) for one in EXEMPT) and not page.is_relative_to(ROOT / ".venv")
]
CODE = [
    file
    for pattern in ("*/sluice_*/**/*.py", "*/sluice_*/**/*.html", "devstack/playbooks/*.yaml")
    for file in sorted(ROOT.glob(pattern))
]


def pattern_of(words):
    """Matches earlier words, but not the new ones that begin with them."""
    now = EARLIER[words].words
    return re.escape(words) + (f"(?!{now.removeprefix(words)})" if now.startswith(f"{words} ") else "") + r"(?![\w-])"


#: A command line with earlier words, or such words between backticks.
_typed = re.compile(rf"(?<![\w.])sluice (?:--[\w-]+[ =]\S+ )*({'|'.join(map(pattern_of, EARLIER))})")
_named = re.compile(rf"`({'|'.join(pattern_of(words) for words in EARLIER if ' ' in words)})[` ]")


@pytest.mark.parametrize("file", [*PAGES, *CODE], ids=lambda file: str(file.relative_to(ROOT)))
def test_nothing_says_earlier_words(file):
    text = file.read_text(encoding="utf-8")
    named = [] if file.name in ("habits.md", EARLIER_WORDS) else _named.findall(text)
    assert _typed.findall(text) + named == []
