"""All generated files of the documentation."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from docs.generated import commands, manual, options, rest, results, words
from docs.generated.markdown import is_generated, with_parts

ROOT: Final = Path(__file__).resolve().parents[2]
DOCS: Final = ROOT / "docs"


def files() -> dict[str, str]:
    """Path below ``docs`` → content, of each completely generated file."""
    made = {
        "cli": commands.pages(),
        "configuration": {**options.pages(), **rest.rule_pages()},
        "configuration/sample": {**options.samples(), **rest.rule_samples()},
        "man": manual.pages(),
        "reference": {**rest.call_pages(), **words.pages()},
    }
    return {f"{folder}/{name}": content for folder, those in made.items() for name, content in those.items()}


def parts() -> dict[str, str]:
    """Name of a mark → the Markdown between it and its end, in handwritten pages."""
    return {**words.parts(), **results.parts()}


def outputs() -> dict[Path, str]:
    """Every generated file, or file with generated parts, with its whole content.

    :raises ValueError: if a page has a mark without an end, or an unknown one
    """
    found = {DOCS / name: content for name, content in files().items()}
    known = parts()
    for page in sorted(DOCS.rglob("*.md")):
        if page not in found:
            text = page.read_text(encoding="utf-8")
            renewed = with_parts(text, known)
            if renewed is not text:
                found[page] = renewed
    return found


def write() -> None:
    """Write all files, and remove generated pages that are no longer generated."""
    made = outputs()
    for page in sorted(DOCS.rglob("*.md")):
        if page not in made and is_generated(page.read_text(encoding="utf-8")):
            page.unlink()
    for path, content in made.items():
        path.write_text(content, encoding="utf-8")
