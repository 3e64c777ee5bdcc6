"""The test of each shell block of the documentation: ``python -m docs.checks.shell_blocks`` counts them.

Directly above a block stands ``<!-- tested by: tests/functional/test_x.py -->``, a test that takes the commands from
the page or does the same and names the page, or ``<!-- no-run: reason -->``.  A block of the installation guide names
the host on which the probe of the guide runs it (``host=proxy``).
"""

from __future__ import annotations

import re
from collections import Counter
from typing import Final

from docs.checks.pages import ROOT, Block, Page, documentation

TESTED: Final = "tested by"
NOT_RUN: Final = "no-run"
#: The probe of the installation guide.
GUIDE_PROBE: Final = "tests/probe/test_install_guide.py"
#: First words of lines of shell input.
_COMMANDS: Final = (
    "sluice",
    "openstack",
    "curl",
    "swift",
    "make",
    "pip",
    "python",
    "systemctl",
    "apt-get",
    "git",
    "sudo",
    "export",
    "redis-cli",
    "rabbitmqctl",
    "mount",
)
_command = re.compile(rf"(?:\$ )?(?:\S*/)?(?:{'|'.join(_COMMANDS)})(?:-[a-z-]+)?(?:\s|$)")


def kind_of(block: Block) -> str:
    """:data:`TESTED`, :data:`NOT_RUN`, or empty without a valid comment."""
    if _is_of_guide(block):
        return TESTED
    kind, colon, rest = block.comment.partition(": ")
    return kind if colon and rest.strip() and kind in (TESTED, NOT_RUN) else ""


def faults_of(page: Page) -> list[str]:
    """Return the faults of the blocks of ``page``, each with its line."""
    found = []
    for block in page.blocks:
        if block.language == "" and _command.match(block.text):
            found.append(f"line {block.line}: a shell block without its language, expected a fence with `sh`")
    for block in page.shell_blocks:
        kind = kind_of(block)
        if not kind:
            found.append(
                f"line {block.line}: expected `<!-- tested by: FILE -->` or `<!-- no-run: reason -->` above it"
            )
        elif kind == TESTED:
            found += [f"line {block.line}: {fault}" for fault in _test_faults(page, block)]
    return found


def _is_of_guide(block: Block) -> bool:
    """Whether the probe of the installation guide runs it."""
    return block.options.startswith("host=")


def _test_faults(page: Page, block: Block) -> list[str]:
    said = GUIDE_PROBE if _is_of_guide(block) else block.comment.partition(": ")[2]
    names = [name.strip() for name in said.split(",")]
    missing = [name for name in names if not (ROOT / name).is_file()]
    if missing:
        return [f"`{name}` is no file" for name in missing]
    wanted = (f'"{page.path.stem}"',) if _is_of_guide(block) else _files_of(page)
    texts = [(ROOT / name).read_text(encoding="utf-8") for name in names]
    if not any(one in text for text in texts for one in wanted):
        return [f"`{names[0]}` does not name `{page.path.name}`"]
    return []


def _files_of(page: Page) -> tuple[str, ...]:
    """The names by which a test may call the file of a page; each folder has an ``index.md``."""
    name, folder = page.path.name, page.path.parent.name
    return (f"{folder}/{name}", f'"{folder}" / "{name}"') if name == "index.md" else (name,)


def count() -> Counter[str]:
    """Kind → shell blocks of handwritten documentation."""
    pages = (page for page in documentation() if not page.is_generated)
    return Counter(kind_of(block) or "unmarked" for page in pages for block in page.shell_blocks)


def main() -> None:
    """Print the counts."""
    for kind, number in sorted(count().items()):
        print(f"{kind}: {number}")


if __name__ == "__main__":
    main()
