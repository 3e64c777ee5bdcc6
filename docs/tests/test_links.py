"""Links of all pages lead to an existing file and heading; frequent topics are few links away."""

import pytest
from docs.checks.pages import DOCS, ROOT, all_pages, documentation

PAGES = {page.path: page for page in all_pages()}
#: Frequent topic → the page that has it, and the heading (empty: the page is about it).
WANTED = {
    "install": (DOCS / "install" / "index.md", "a-cluster"),
    "first filter": (DOCS / "tutorials" / "first-filter.md", ""),
    "policies of a project": (DOCS / "user" / "index.md", ""),
    "a 503": (DOCS / "admin" / "troubleshooting.md", ""),
    "sizing": (DOCS / "install" / "index.md", "sizing"),
}


@pytest.mark.parametrize("page", PAGES.values(), ids=lambda page: page.name)
def test_links_lead_somewhere(page):
    lost = [f"{path.name}#{anchor}" for path, anchor in page.links if not leads_somewhere(path, anchor)]
    assert lost == []


def leads_somewhere(path, anchor):
    """Whether ``path`` exists and, if it is a page, has ``anchor``."""
    if not anchor or path not in PAGES:
        return path.exists() and not anchor
    return anchor in PAGES[path].anchors


def reached(start, links):
    """Page → the number of links from ``start`` to it."""
    distances = {start: 0}
    front = [start]
    while front:
        front = [path for page in front for path in links(PAGES[page]) if path in PAGES and path not in distances]
        distances |= dict.fromkeys(front, max(distances.values()) + 1)
    return distances


def test_each_page_is_reached_by_toctrees():
    found = reached(DOCS / "index.md", lambda page: page.toctree)
    assert [page.name for page in documentation() if page.path not in found] == []


@pytest.mark.parametrize("wanted", WANTED)
def test_what_is_looked_for_most_is_two_links_away(wanted):
    found = reached(ROOT / "README.md", lambda page: [path for path, _ in page.links])
    path, heading = WANTED[wanted]
    assert found.get(path, 99) <= 2
    assert not heading or heading in PAGES[path].anchors


def test_an_index_links_what_its_toctree_names():
    for page in documentation():
        linked = {path for path, _ in page.links}
        hidden = [path.name for block in page.blocks if is_hidden(block) for path in page.toctree if path not in linked]
        assert hidden == [], page.name


def is_hidden(block):
    """Whether a toctree is hidden from readers."""
    return block.language == "{toctree}" and ":hidden:" in block.text
