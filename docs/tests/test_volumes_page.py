"""Sentences of docs/admin/volumes/policies.md compile."""

import re
from pathlib import Path

from sluice_dsl.compile import compile_text
from sluice_dsl.testing import make_catalogue

PAGE = (Path(__file__).resolve().parents[1] / "admin" / "volumes" / "policies.md").read_text()


def test_its_sentences_compile_without_a_warning():
    (text,) = re.findall(r"^```sluice\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    assert [one.warnings for one in compile_text(text, make_catalogue())] == [()] * len(text.splitlines())
