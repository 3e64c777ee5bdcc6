"""nbdkit's arguments for a stack."""

from pathlib import Path

import pytest

from sluice_block.stack.filters import FILTERS, nbdkit_arguments

BUILT, KEEPER = Path("/built"), Path("/keeper.sock")
FILE = ["file", "/volume"]


def from_pages(steps, source=FILE, keeper=KEEPER):
    """The file from whose pages large reads are answered."""
    given = nbdkit_arguments([(one, {}) for one in steps], source, BUILT, Path("/page"), keeper=keeper, size=4096)
    found = [one.partition("=")[2] for one in given if one.startswith("fuse-file=")]
    assert len(found) <= 1
    return found[0] if found else None


@pytest.mark.parametrize("steps", [[], ["nop"], ["nop", "nop"]])
def test_large_reads_are_answered_from_the_pages_of_a_file_as_it_is(steps):
    assert from_pages(steps) == "/volume"


@pytest.mark.parametrize("keyword", sorted(set(FILTERS) - {"nop"}))
def test_what_a_filter_makes_or_keeps_is_not_passed_by(keyword):
    assert from_pages(["nop", keyword]) is None


def test_other_sources_and_nbd_clients_have_no_pages():
    assert from_pages([], ["nbd", "uri=nbd://"]) is None
    assert from_pages([], keeper=None) is None
