"""The example of docs/admin/request-filters.md, as the page shows it and running."""

import importlib.util
import logging
import re
from pathlib import Path

import pytest

from sluice_core.testing import assignment
from sluice_middleware.swift.proxy_api import Request
from sluice_middleware.testing import ProxyStack

DOCS = Path(__file__).resolve().parents[1]
EXAMPLE = DOCS / "examples" / "receipts.py"


@pytest.fixture
def receipts():
    spec = importlib.util.spec_from_file_location("example_receipts", EXAMPLE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.Receipts


def test_the_page_shows_the_example_as_it_is():
    shown = re.search(r"```python\n(.*?)```", (DOCS / "admin" / "request-filters.md").read_text(), re.DOTALL)[1]
    assert shown.strip() in EXAMPLE.read_text()


@pytest.mark.parametrize(("pieces", "words"), [(10, "1000 bytes, complete"), (3, "300 bytes, cut off")])
def test_it_tells_how_much_of_an_object_was_taken(tmp_path, receipts, caplog, pieces, words):
    stand = ProxyStack(tmp_path, receipts)
    stand.swift.piece = 100
    stand("PUT", body=b"x" * 1000)
    stand.set_policies(assignment(keyword="receipts"))
    with caplog.at_level(logging.INFO):
        body = Request.blank("/v1/AUTH_a/c/o").call_application(stand.reads)[2]
        taken = iter(body)
        for _ in range(pieces):
            next(taken)
        if pieces == 10:
            assert next(taken, None) is None
        body.close()
    assert f"AUTH_a/c/o: {words}" in caplog.text
