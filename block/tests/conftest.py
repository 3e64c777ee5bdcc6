"""The filters, built once for all tests of a process."""

import functools
import subprocess
from pathlib import Path

import pytest

from sluice_block.stack.build import build
from sluice_block.stack.page import Page


@pytest.fixture(scope="session")
def built(tmp_path_factory):
    return build(tmp_path_factory.mktemp("filters"))


@pytest.fixture
def page_file(tmp_path):
    """The path of a page without limits."""
    Page.create(tmp_path / "page").close()
    return tmp_path / "page"


@pytest.fixture
def page(page_file):
    opened = Page.open(page_file)
    yield opened
    opened.close()


@pytest.fixture(scope="session")
def uploadable(tmp_path_factory):
    """Builds a filter of ``uploaded/filters`` like a user who uploads it; returns the code."""
    folder = tmp_path_factory.mktemp("uploadable")
    sources = Path(__file__).parent / "uploaded" / "filters"

    @functools.cache
    def compiled(name, *options):
        made = folder / f"{name}.so"
        command = ["cc", "-O2", "-shared", "-fPIC", *options, "-o", str(made), str(sources / f"{name}.c")]
        subprocess.run(command, check=True)
        return made.read_bytes()

    return compiled
