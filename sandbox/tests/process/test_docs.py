"""The page on isolated filters: its example runs, its links and its limits are correct."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from tests.support.sandbox.process import supervisor, uploaded

from sluice_code.code_store import CodeStore
from sluice_filters.testing import FilterContract
from sluice_sandbox import cli
from sluice_sandbox.limits import Limits
from sluice_sandbox.process.session import ProcessTeam

PAGE = Path(__file__).parents[3] / "docs" / "admin" / "isolated-filters.md"
STEP = {"name": "step", "type": "int", "minimum": 0, "maximum": 255, "default": 13}


class TestDocumentedExample(FilterContract):
    params = {"step": 200}

    @pytest.fixture(scope="class", autouse=True)
    @classmethod
    def made(cls, tmp_path_factory):
        code = re.search(r"```python\n(class .*?)```", PAGE.read_text(), re.DOTALL)[1].encode()
        store = CodeStore(tmp_path_factory.mktemp("code"))
        with supervisor(Limits(patience=30)) as folder:
            team = ProcessTeam(store, folder, Limits(patience=30))
            cls.filter = uploaded(store, team, code, "shift", "Shift", reverse=True, info={"parameters": [STEP]})
            yield


def test_every_link_of_the_page_leads_somewhere():
    links = re.findall(r"\]\((?!https?:)([^)#]+)\)", PAGE.read_text())
    assert len(links) >= 4
    assert [link for link in links if not (PAGE.parent / link).exists()] == []


def test_the_limits_of_the_page_are_the_defaults():
    text, limits = PAGE.read_text(), Limits()
    for last_error_line in (
        f"| {limits.memory >> 20} MiB per worker",
        f"| {limits.patience:.0f} s inside one call",
        f"| {limits.cpu:.0f} s + {limits.cpu_per_mb:.0f} s per MB",
        f"| {limits.slack >> 20} MiB + {limits.growth:.0f} × the input",
        f"| {limits.workers} per tenant",
        f"| {limits.tenants} at once, {limits.idle:.0f} s",
    ):
        assert last_error_line in text, last_error_line


def test_the_commands_of_the_page_are_understood():
    commands = [
        words.partition("#")[0] for words in re.findall(r"^sluice-sandbox (.*)", PAGE.read_text(), re.MULTILINE)
    ]
    assert [words.split()[0] for words in commands] == ["serve", "engine", "image", "check"]
    for words in commands:
        cli._parser().parse_args(shlex.split(words))


def test_text_format_is_compiled_as_the_page_says():
    (code,) = re.findall(r'^python -c "(.*)" xor\.wat > xor\.wasm$', PAGE.read_text(), re.MULTILINE)
    source = Path(__file__).parents[3] / "filters" / "wasm" / "xor.wat"
    made = subprocess.run([sys.executable, "-c", code, str(source)], capture_output=True, check=True).stdout
    assert made.startswith(b"\0asm")
