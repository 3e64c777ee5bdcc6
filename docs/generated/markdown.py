"""The Markdown of generated pages, and the marks of generated parts.

A handwritten page has a generated part between ``<!-- generated: NAME -->`` and ``<!-- generated: end -->``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

#: Below the title of each page that is generated as a whole.
NOTICE: Final = "<!-- This page is generated from the code by `make generate`. -->"
END: Final = "<!-- generated: end -->"
_part = re.compile(r"<!-- generated: (?!end )([\w-]+) -->\n")
_code = re.compile(r"(`[^`]*`)")


def page(title: str, *paragraphs: str) -> str:
    """A whole generated page."""
    return "\n\n".join([f"# {title}", NOTICE, *paragraphs]) + "\n"


def is_generated(text: str) -> bool:
    """Whether ``text`` is a page that is generated as a whole."""
    return NOTICE in text[:500]


def table(titles: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table whose cells are Markdown."""
    cells = ([cell.replace("|", "\\|") for cell in line] for line in (titles, ["---"] * len(titles), *rows))
    return "\n".join(f"| {' | '.join(line)} |" for line in cells)


def escaped(text: str) -> str:
    """A text of the code as Markdown: backticks mark code, and no other character has a meaning."""
    halves = _code.split(text)
    return "".join(one if place % 2 else re.sub(r"([<*\[\]])", r"\\\1", one) for place, one in enumerate(halves))


def with_parts(text: str, parts: Mapping[str, str]) -> str:
    """``text`` of a page with each of its generated parts renewed; ``text`` itself if it has none.

    :raises ValueError: for an unknown mark, or one without an end
    """
    found = _part.search(text)
    if not found:
        return text
    name = found[1]
    _, end, tail = text[found.end() :].partition(END)
    if name not in parts or not end:
        raise ValueError(f"mark `generated: {name}`: expected one of {', '.join(parts)}, and `{END}` behind it")
    return f"{text[: found.end()]}\n{parts[name]}\n\n{END}{with_parts(tail, parts)}"
