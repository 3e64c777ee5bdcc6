"""The form of handwritten pages."""

import re
from collections import Counter
from itertools import pairwise

import pytest
from docs.checks import shell_blocks
from docs.checks.pages import DOCS, Page, documentation

HAND_WRITTEN = {page.name: page for page in documentation() if not page.is_generated}
MOST_WORDS = 3000


@pytest.mark.parametrize("name", HAND_WRITTEN)
def test_a_page_has_one_title(name):
    tags = [tag for tag, _ in HAND_WRITTEN[name].headings]
    assert tags[0] == "h1"
    assert tags.count("h1") == 1
    steps = [int(after[1]) - int(before[1]) for before, after in pairwise(tags)]
    assert all(step <= 1 for step in steps), "a level of headings is left out"


@pytest.mark.parametrize("name", HAND_WRITTEN)
def test_a_page_is_not_too_long(name):
    assert HAND_WRITTEN[name].words <= MOST_WORDS


@pytest.mark.parametrize("name", HAND_WRITTEN)
def test_each_shell_block_says_how_it_is_tested(name):
    assert shell_blocks.faults_of(HAND_WRITTEN[name]) == []


@pytest.fixture(scope="module")
def calls():
    """The prefixes of the API's paths."""
    page = (DOCS / "reference" / "rest-calls.md").read_text(encoding="utf-8")
    return set(re.findall(r"^## /([\w-]+)$", page, re.MULTILINE))


@pytest.mark.parametrize("name", HAND_WRITTEN)
def test_the_address_of_the_api_has_one_name(name, calls):
    named = re.findall(r"\$\{?(\w+)\}?/(\w[\w-]*)", HAND_WRITTEN[name].text)
    assert {variable for variable, first in named if first in calls} <= {"SLUICE_URL"}


def test_each_term_has_one_entry_in_the_glossary():
    rows = re.findall(r"^\| (.+?) \| .+ \|$", (DOCS / "reference" / "glossary.md").read_text(), re.MULTILINE)
    terms = Counter(rows[1:])
    assert [term for term, entries in terms.items() if entries > 1] == []
    assert len(terms) > 80


PAGE = """\
# Title

<!-- tested by: docs/tests/test_form.py -->
```sh
sluice policy list
```

<!-- no-run: it needs another machine -->
```sh
sluice node list
```
"""


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        (PAGE, None),
        (PAGE.replace("<!-- tested by", "<!-- tried by"), "line 4: expected `<!-- tested by"),
        (PAGE.replace(": it needs another machine", ""), "line 9: expected `<!-- tested by"),
        (PAGE.replace("test_form", "test_none"), "line 4: `docs/tests/test_none.py` is no file"),
        (PAGE.replace("docs/tests/test_form", "conftest"), "line 4: `conftest.py` does not name `some.md`"),
        (PAGE + "\n    sluice policy list\n", "line 13: a shell block without its language"),
    ],
)
def test_a_shell_block_that_does_not_say_it_is_found(tmp_path, text, fault):
    (tmp_path / "some.md").write_text(text)
    faults = shell_blocks.faults_of(Page(tmp_path / "some.md"))
    assert [one.startswith(fault) for one in faults] == ([True] if fault else [])


def test_shell_blocks_are_counted(capsys):
    shell_blocks.main()
    counts = dict(line.split(": ") for line in capsys.readouterr().out.splitlines())
    assert {kind: int(number) for kind, number in counts.items()} == dict(shell_blocks.count())
