"""The filters, built once for all tests of a process."""

import pytest

from sluice_block.stack.build import build
from sluice_block.stack.page import Page


@pytest.fixture(scope="session")
def built(tmp_path_factory):
    return build(tmp_path_factory.mktemp("filters"))


@pytest.fixture
def page_file(tmp_path):
    """Where a page lies that has no limits."""
    Page.create(tmp_path / "page").close()
    return tmp_path / "page"


@pytest.fixture
def page(page_file):
    opened = Page.open(page_file)
    yield opened
    opened.close()
