"""The contract of decoders and of random access, as tests.

Stored data decodes to the input, damage is detected, records are checked; every range is right, and costs no more than
its window.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sluice_filters.api import CorruptData, FilterError, Window
from sluice_filters.chain import Filters, Records, read_range
from sluice_filters.pipe import cut, run
from sluice_filters.testing.suite import FilterSuite, damaged, outcome

_SETTINGS: Final = settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.differing_executors, HealthCheck.too_slow]
)
_NONSENSE: Final[tuple[Any, ...]] = (None, -1, "", [], 1 << 70)


class DecodingContract(FilterSuite):
    """The contract of a reversible filter for stored data."""

    def test_the_record_is_small_json_and_knows_the_size(self) -> None:
        for data in self.samples:
            stored, records = self.coded(data)
            if not records:
                assert stored == data or not self.filter.info.reversible
                continue
            assert self.filter.info.reversible
            assert self.filter.plain_size(records[0]["r"]) == len(data)
            assert len(json.dumps(records)) < 2048

    def test_decoding_restores_the_object_however_it_is_cut(self) -> None:
        for data in self.samples:
            stored, records = self.coded(data)
            if not self.filter.info.reversible:
                assert not records
                continue
            for place in range(len(stored) + 1):
                assert run(self.decoded(records), [stored[:place], stored[place:]]) == data
            assert run(self.decoded(records), cut(stored, 1)) == data

    @_SETTINGS
    @given(data=st.binary(max_size=6000) | st.text("ab\n", max_size=9000).map(str.encode), step=st.integers(1, 4096))
    def test_encode_then_decode_is_identity(self, data: bytes, step: int) -> None:
        stored, records = self.coded(data)
        if self.filter.info.reversible:
            assert run(self.decoded(records), cut(stored, step)) == data

    def test_truncated_data_are_noticed_at_every_point(self) -> None:
        for _, stored, records in self._transformed():
            for length in range(len(stored)):
                assert outcome(self.decoded(records), stored[:length]) is None, length

    def test_appended_and_doubled_data_are_noticed(self) -> None:
        for _, stored, records in self._transformed():
            for more in (b"\0", stored[:1], stored):
                assert outcome(self.decoded(records), stored + more) is None

    def test_every_damaged_byte_is_noticed_or_harmless(self) -> None:
        if not self.checked:
            return
        for data, stored, records in self._transformed():
            for bad in damaged(stored):
                assert outcome(self.decoded(records), bad) in (None, data)

    def test_a_record_with_a_wrong_value_is_refused_or_harmless(self) -> None:
        for _, stored, records in self._transformed():
            inner = records[-1]["r"]
            for name in inner:
                for wrong in _NONSENSE:
                    bad = [*records[:-1], {**records[-1], "r": {**inner, name: wrong}}]
                    assert self._harmless(bad, stored, records), (name, wrong)

    def _harmless(self, bad: Records, stored: bytes, good: Records) -> bool:
        """Whether decoding with ``bad`` records raises an error of Sluice, or gives the right bytes."""
        try:
            return run(self.decoded(bad), [stored]) == run(self.decoded(good), [stored])
        except FilterError:
            return True


def ranges(size: int) -> Iterator[tuple[int, int]]:
    """Yield ranges of ``size`` bytes: single bytes, halves, everything, and around powers of two."""
    marks = {0, 1, size // 3, size // 2, size - 1, size}
    for power in range(4, size.bit_length()):
        marks.update(range((1 << power) - 1, (1 << power) + 2))
        marks.update(range(3 * (1 << power) - 1, 3 * (1 << power) + 2))
    places = sorted(mark for mark in marks if 0 <= mark <= size)
    return ((start, stop) for start in places for stop in places if start < stop)


def check_ranges(stored: bytes, records: Records, known: Filters, data: bytes) -> None:
    """Read every range of ``ranges``; those at the beginning or end of the object also in small pieces."""
    for start, stop in ranges(len(data)):
        for step in (None, 7) if start == 0 or stop == len(data) else (None,):
            assert read_range(stored, records, known, start, stop, step) == data[start:stop], (start, stop, step)


class RandomAccessContract(FilterSuite):
    """The contract of a filter with random access for ranges."""

    def test_random_access_is_right_at_every_boundary(self) -> None:
        if not self.filter.info.random_access:
            return
        for data, stored, records in self._transformed():
            check_ranges(stored, records, {self.filter.info.keyword: self.filter}, data)

    def test_damage_inside_a_window_is_noticed_or_harmless(self) -> None:
        if not (self.checked and self.filter.info.random_access):
            return
        for data, stored, records in self._transformed():
            start, stop = len(data) // 3, len(data) // 3 + 1
            for place in range(0, len(stored), 1 + len(stored) // 100):
                bad = stored[:place] + bytes((stored[place] ^ 0x10,)) + stored[place + 1 :]
                try:
                    read = read_range(bad, records, {self.filter.info.keyword: self.filter}, start, stop)
                except CorruptData:
                    continue
                assert read == data[start:stop]

    def test_windows_are_inside_and_hold_the_range(self) -> None:
        if not self.filter.info.random_access:
            return
        for _, stored, records in self._transformed():
            size = self.filter.plain_size(records[0]["r"])
            where = self.make().locate(records[0]["r"], 0, size) if size else None
            if isinstance(where, Window):
                assert 0 <= where.start < where.stop <= len(stored)
                assert where.length == size
