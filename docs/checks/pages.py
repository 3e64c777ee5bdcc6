"""Pages as parsed Markdown: headings, links, blocks of code."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Final
from urllib.parse import unquote

from docs.generated.markdown import is_generated
from markdown_it import MarkdownIt
from markdown_it.token import Token

ROOT: Final = Path(__file__).resolve().parents[2]
DOCS: Final = ROOT / "docs"
#: Languages of blocks that a reader types into a shell.
SHELL: Final = ("sh", "console", "bash", "shell")
#: Folders of build output.
BUILT: Final = ("build", "dist")
#: Levels of headings that links may name, as ``myst_heading_anchors`` of ``docs/conf.py``.
_ANCHORS: Final = ("h1", "h2", "h3", "h4")
_markdown = MarkdownIt("commonmark").enable("table")
_comment = re.compile(r"<!-- (.*) -->")


@dataclass(frozen=True, slots=True)
class Block:
    """A block of code: its language, where it is, and the comment directly above it (empty: none).

    :param language: empty for an indented block
    :param options: the text after the language
    """

    language: str
    options: str
    text: str
    line: int
    comment: str


@dataclass(frozen=True)
class Page:
    """A page of the repository, by its path."""

    path: Path

    @property
    def name(self) -> str:
        """Its path in the repository."""
        return str(self.path.relative_to(ROOT))

    @cached_property
    def text(self) -> str:
        return self.path.read_text(encoding="utf-8")

    @property
    def is_generated(self) -> bool:
        """Whether the whole page is generated."""
        return is_generated(self.text)

    @property
    def words(self) -> int:
        return len(self.text.split())

    @cached_property
    def tokens(self) -> list[Token]:
        return _markdown.parse(self.text)

    @cached_property
    def headings(self) -> list[tuple[str, str]]:
        """Tag (``h1``, …) and text of each heading."""
        pairs = zip(self.tokens, self.tokens[1:], strict=False)
        return [(opened.tag, inline.content) for opened, inline in pairs if opened.type == "heading_open"]

    @cached_property
    def anchors(self) -> frozenset[str]:
        """Valid anchors of links to it."""
        found: list[str] = []
        for tag, inline in zip(self.tokens, self.tokens[1:], strict=False):
            if tag.type == "heading_open" and tag.tag in _ANCHORS:
                text = "".join(each.content for each in inline.children or () if each.type in ("text", "code_inline"))
                slug = re.sub(r"[^\w\- ]", "", text.replace(" ", "-")).lower()
                again = sum(1 for one in found if re.fullmatch(rf"{re.escape(slug)}(-\d+)?", one))
                found.append(f"{slug}-{again}" if slug in found else slug)
        return frozenset(found)

    @cached_property
    def links(self) -> list[tuple[Path, str]]:
        """File and anchor (empty: none) of each link; links out of the repository are omitted."""
        found = []
        for target in self._targets():
            if not re.match(r"[a-z]+:", target):
                path, _, anchor = unquote(target).partition("#")
                found.append(((self.path.parent / path).resolve() if path else self.path, anchor))
        return found

    def _targets(self) -> Iterator[str]:
        for token in self.tokens:
            for one in token.children or ():
                target = one.attrs.get("href") or one.attrs.get("src")
                if target:
                    yield str(target)

    @cached_property
    def blocks(self) -> list[Block]:
        """All blocks of code."""
        found = []
        above = ""
        for token in self.tokens:
            if token.type in ("fence", "code_block"):
                language, _, options = token.info.strip().partition(" ")
                found.append(Block(language, options, token.content, (token.map or [0])[0] + 1, above))
            comment = _comment.fullmatch(token.content.strip()) if token.type == "html_block" else None
            above = comment[1] if comment else ""
        return found

    @property
    def shell_blocks(self) -> list[Block]:
        """The blocks that a reader types into a shell."""
        return [one for one in self.blocks if one.language in SHELL]

    @property
    def toctree(self) -> list[Path]:
        """The pages in its toctrees."""
        found: list[Path] = []
        for block in self.blocks:
            if block.language == "{toctree}":
                entries = [line for line in block.text.splitlines() if line and not line.startswith(":")]
                for entry in entries:
                    found += sorted(self.path.parent.glob(f"{entry}.md"))
        return found


@cache
def all_pages() -> tuple[Page, ...]:
    """Every page of the repository, by its path."""
    # a copy of the clone may have no history, so git is not used
    folders = (one for one in ROOT.iterdir() if one.is_dir() and not one.name.startswith(".") and one.name not in BUILT)
    found = [*ROOT.glob("*.md"), *(path for folder in folders for path in folder.rglob("*.md"))]
    return tuple(Page(path) for path in sorted(found))


def documentation() -> tuple[Page, ...]:
    """The pages below ``docs``."""
    return tuple(page for page in all_pages() if page.path.is_relative_to(DOCS))
