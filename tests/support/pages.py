"""Parts of documentation pages that a test can compare: texts of the code, names of tests, commands."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final, Self

ROOT: Final = Path(__file__).parents[2]
DOCS: Final = ROOT / "docs"
#: A value in a text: the placeholder in pages, and in :func:`code_texts`.
VALUE: Final = "…"
_FORMAT: Final = re.compile(r"%(?:\([^)]*\))?[-#0 +]*[\d.]*[a-zA-Z]")
_SPAN: Final = re.compile(r"(?<!`)(`+)(?!`)(.+?)(?<!`)\1(?!`)")
_COMMENT: Final = re.compile(r"<!--(.*?)-->", re.DOTALL)
#: The marker that bash prints behind each command.
_END: Final = "--- end of a command of the page ---"
_HEADING: Final = re.compile(r"^#+ (.*)$", re.MULTILINE)
_BLOCK: Final = re.compile(
    r"^<!-- tested by: (?P<test>\S+) -->\n```(?P<kind>sh|console)\n(?P<body>.*?)^```$", re.MULTILINE | re.DOTALL
)
_TEST: Final = re.compile(r"\b[\w/-]+/test_\w+\.py(?:::\w+)?")


def read_page(name: str) -> str:
    """The text of a page below ``docs``."""
    return (DOCS / name).read_text(encoding="utf-8")


def table_rows(text: str, title: str) -> list[list[str]]:
    """The cells of the rows of all tables whose first column has this title."""
    rows: list[list[str]] = []
    inside = False
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")] if line.startswith("|") else []
        if not cells:
            inside = False
        elif cells[0] == title:
            inside = True
        elif inside and set(cells[0]) != {"-"}:
            rows.append(cells)
    return rows


def code_spans(text: str) -> list[str]:
    """The texts in backticks."""
    return [found[2].strip() for found in _SPAN.finditer(text)]


def named_tests(text: str) -> list[str]:
    """Tests that a text names, as ``path`` or ``path::function``."""
    return _TEST.findall(text)


def comments(text: str) -> list[str]:
    """Its HTML comments."""
    return _COMMENT.findall(text)


def missing_tests(names: list[str]) -> list[str]:
    """The ``names`` that are no tests."""
    return [name for name in names if not _is_test(name)]


def _is_test(name: str) -> bool:
    path, _, function = name.partition("::")
    file = ROOT / path
    return file.is_file() and f"def {function or 'test_'}" in file.read_text(encoding="utf-8")


@cache
def code_texts() -> str:
    """All texts in Sluice's packages, a line each, with :data:`VALUE` for each value."""
    return "\n".join(line for path in sorted(ROOT.glob("*/sluice_*/**/*.py")) for line in texts_of(path))


def texts_of(path: Path) -> Iterator[str]:
    """The texts of one file."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.JoinedStr):
            yield _joined(node)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield _FORMAT.sub(VALUE, node.value).replace("\n", " ")


def _joined(node: ast.JoinedStr) -> str:
    parts = [str(one.value) if isinstance(one, ast.Constant) else VALUE for one in node.values]
    return re.sub(f"{VALUE}+", VALUE, "".join(parts)).replace("\n", " ")


@dataclass(frozen=True)
class ShellBlock:
    """A block of shell of a page.

    ``heading`` is the one that it stands under; ``commands`` each have the lines that the page shows as their output.
    """

    heading: str
    tested_by: str
    commands: tuple[tuple[str, tuple[str, ...]], ...]

    @property
    def script(self) -> str:
        """The commands alone."""
        return "\n".join(command for command, _ in self.commands)


def shell_blocks(text: str) -> list[ShellBlock]:
    """The blocks of a page that a test runs; blocks with ``no-run`` are left out."""
    headings = [(found.start(), found[1]) for found in _HEADING.finditer(text)]
    blocks = []
    for found in _BLOCK.finditer(text):
        above = [title for start, title in headings if start < found.start()]
        commands = _prompted(found["body"]) if found["kind"] == "console" else [(found["body"].rstrip("\n"), ())]
        blocks.append(ShellBlock(above[-1] if above else "", found["test"], tuple(commands)))
    return blocks


def _prompted(body: str) -> list[tuple[str, tuple[str, ...]]]:
    commands: list[tuple[str, tuple[str, ...]]] = []
    for line in body.splitlines():
        if line.startswith("$ "):
            commands.append((line[2:], ()))
        elif line.startswith("> "):
            commands[-1] = (f"{commands[-1][0]}\n{line[2:]}", ())
        else:
            command, shown = commands[-1]
            commands[-1] = (command, (*shown, line))
    return commands


class Shell:
    """A bash that runs the commands of a page one after the other; it ends at the first one that fails.

    :param environment: variables beside those of the test
    :param named: a name on the page → its value here
    """

    def __init__(self, folder: Path, environment: Mapping[str, str], named: Mapping[str, str] | None = None) -> None:
        self._named = dict(named or {})
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        self._bash = subprocess.Popen(
            ["bash", "-euo", "pipefail"],
            cwd=folder,
            env={**os.environ, "PATH": path, "COLUMNS": "200", **environment},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._bash.kill()
        self._bash.communicate()

    def run(self, command: str, limit: float = 120.0) -> str:
        """The output of a command, errors included.

        :raises AssertionError: when it fails, or takes longer than ``limit`` seconds
        """
        for name, here in self._named.items():
            command = command.replace(name, here)
        assert self._bash.stdin is not None
        assert self._bash.stdout is not None
        self._bash.stdin.write(f"{{\n{command}\n}} </dev/null\nprintf '\\n%s\\n' '{_END}'\n")
        self._bash.stdin.flush()
        watchdog = threading.Timer(limit, self._bash.kill)
        watchdog.start()
        printed = []
        for line in self._bash.stdout:
            if line.rstrip("\n") == _END:
                watchdog.cancel()
                return "".join(printed)[:-1]  # printf's, for output that ends within a line
            printed.append(line)
        watchdog.cancel()
        raise AssertionError(f"{command}\n{''.join(printed)}")

    def run_block(self, block: ShellBlock, limit: float = 120.0) -> str:
        """The output of all commands of a block, after comparing it with the output on the page.

        :raises AssertionError: when a command fails, or prints something else
        """
        printed = ""
        for command, shown in block.commands:
            output = self.run(command, limit)
            expect_lines(output, shown)
            printed += output
        return printed


def expect_lines(output: str, shown: Iterable[str]) -> None:
    """Check that the lines of a page are in an output in this order.

    :data:`VALUE` stands for anything, alone on a line for any lines; blanks count as one.

    :raises AssertionError: when one is not
    """
    lines = iter(output.splitlines())
    for wanted in (line for line in shown if line.strip() != VALUE):
        pattern = re.compile(r".*".join(map(re.escape, " ".join(wanted.split()).split(VALUE))))
        assert any(pattern.fullmatch(" ".join(line.split())) for line in lines), f"no `{wanted}` in\n{output}"
