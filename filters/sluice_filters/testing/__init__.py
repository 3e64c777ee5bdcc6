"""The contract suite, which every filter must pass, built-in or third-party.

Subclass and name your filter; pytest finds the rest::

    class TestMyFilter(FilterContract):
        filter = MyFilter
        params = {"strength": 3}

Give ``samples`` that are short (some hundred bytes), since they are cut and damaged at every position, and that cross
the filter's own boundaries.  Needs hypothesis.
"""

from __future__ import annotations

from sluice_filters.chain import read_range
from sluice_filters.pipe import cut, run
from sluice_filters.testing.decoding import DecodingContract, RandomAccessContract, check_ranges, ranges
from sluice_filters.testing.encoding import EncodingContract
from sluice_filters.testing.suite import Coded, damaged, encode, outcome

__all__ = [
    "Coded",
    "FilterContract",
    "check_ranges",
    "cut",
    "damaged",
    "encode",
    "outcome",
    "ranges",
    "read_range",
    "run",
]


class FilterContract(EncodingContract, DecodingContract, RandomAccessContract):
    """Every rule of ``sluice_filters.api``, as tests; rules that do not apply pass trivially."""
