"""The contract of random access, as tests: every range is right, and costs no more than its window."""

from __future__ import annotations

from collections.abc import Iterator

from sluice_filters.api import CorruptData, Window
from sluice_filters.chain import Filters, Records, read_range
from sluice_filters.testing.suite import FilterSuite


def ranges(size: int) -> Iterator[tuple[int, int]]:
    """Ranges of ``size`` bytes: single bytes, halves, everything, and around powers of two."""
    marks = {0, 1, size // 3, size // 2, size - 1, size}
    for power in range(4, size.bit_length()):
        marks.update(range((1 << power) - 1, (1 << power) + 2))
        marks.update(range(3 * (1 << power) - 1, 3 * (1 << power) + 2))
    places = sorted(mark for mark in marks if 0 <= mark <= size)
    return ((start, stop) for start in places for stop in places if start < stop)


def check_ranges(stored: bytes, records: Records, known: Filters, data: bytes) -> None:
    """Read every range of ``ranges``; those that begin or end with the object also in small pieces."""
    for start, stop in ranges(len(data)):
        for step in (None, 7) if start == 0 or stop == len(data) else (None,):
            assert read_range(stored, records, known, start, stop, step) == data[start:stop], (start, stop, step)


class RandomAccessContract(FilterSuite):
    """What a filter with random access promises of ranges."""

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
                    found = read_range(bad, records, {self.filter.info.keyword: self.filter}, start, stop)
                except CorruptData:
                    continue
                assert found == data[start:stop]

    def test_windows_are_inside_and_hold_the_range(self) -> None:
        if not self.filter.info.random_access:
            return
        for _, stored, records in self._transformed():
            size = self.filter.plain_size(records[0]["r"])
            where = self.make().locate(records[0]["r"], 0, size) if size else None
            if isinstance(where, Window):
                assert 0 <= where.start < where.stop <= len(stored)
                assert where.length == size
