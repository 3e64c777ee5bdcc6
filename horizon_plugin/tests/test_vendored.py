"""Libraries for browsers are the published files, unchanged, with their licences."""

import hashlib
from pathlib import Path

import pytest

LIBRARIES = Path(__file__).parents[1] / "sluice_dashboard" / "static" / "sluice_dashboard" / "lib"
RECORDED = [line.split() for line in (LIBRARIES / "versions.txt").read_text().splitlines() if not line.startswith("#")]


@pytest.mark.parametrize(("file", "version", "digest"), RECORDED)
def test_a_library_is_the_one_that_was_published(file, version, digest):
    assert hashlib.sha256((LIBRARIES / file).read_bytes()).hexdigest() == digest


def test_every_file_is_recorded():
    assert {str(path.relative_to(LIBRARIES)) for path in LIBRARIES.glob("*/*")} == {file for file, *_ in RECORDED}
