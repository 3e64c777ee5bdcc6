"""Offsets of timestamps: each attempt above the stored one, and no two equal."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluice_rewrites.offsets import MAX_OFFSET, NEW_CONTENT, RANDOM_BITS, next_offset

BLOCK = 2**RANDOM_BITS


@given(st.integers(0, MAX_OFFSET - 2 * BLOCK), st.integers(0, BLOCK - 1))
def test_an_offset_is_above_the_stored_one_and_in_the_next_block(stored, drawn):
    found = next_offset(stored, lambda bits: drawn)
    assert stored < found <= MAX_OFFSET
    assert found // BLOCK == stored // BLOCK + 1
    assert found % BLOCK == drawn


def test_new_content_is_above_what_stores_the_old_bytes_again():
    again = 7
    for _ in range(NEW_CONTENT - 1):
        again = next_offset(again)
    assert again < next_offset(7, multiples=NEW_CONTENT)


def test_two_attempts_at_one_object_differ():
    assert len({next_offset(7) for _ in range(100)}) > 90


@pytest.mark.parametrize("stored", [-1, MAX_OFFSET + 1, MAX_OFFSET, MAX_OFFSET - BLOCK + 1])
def test_what_has_no_next_offset_is_refused(stored):
    with pytest.raises(ValueError, match="offset"):
        next_offset(stored)
