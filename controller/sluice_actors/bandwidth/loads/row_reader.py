"""Reads the rows of a node's report into arrays: by their bytes where they begin as known rows do, else one by one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Any, Final, NamedTuple

import numpy as np

from sluice_actors.bandwidth.arrays import FloatArray, IntArray
from sluice_actors.bandwidth.loads.decoder import PackedRows, row_prefix
from sluice_actors.bandwidth.loads.flow_index import FlowIndex, is_valid_key
from sluice_core.messages.bandwidth import Load
from sluice_core.messages.base import MOST

#: Fields before the three numbers of a row.
_KEY: Final = len(Load._fields) - 3
_NUMBERS: Final = (int, float)


class RowColumns(NamedTuple):
    """Rows in columns."""

    rows: IntArray  #: (rows,) numbers of ``FlowIndex.row``
    values: FloatArray  #: (3, rows) bytes moved in the last second, open transfers, waiting ones
    unsound: int = 0  #: how many rows were refused


def read_rows(rows: Sequence[Sequence[Any]], flow_index: FlowIndex) -> RowColumns:
    """Read ``rows``, without those that are not valid.

    :raises ValueError: when some cannot be unpacked
    """
    columns = _packed_columns(rows, flow_index) if isinstance(rows, PackedRows) else None
    if columns is not None:
        return columns
    unpacked = list(rows)
    try:
        return _columns(unpacked, flow_index)
    except (TypeError, ValueError):
        valid = [row for row in unpacked if _is_valid(row)]
        return _columns(valid, flow_index)._replace(unsound=len(unpacked) - len(valid))


def _packed_columns(rows: PackedRows, flow_index: FlowIndex) -> RowColumns | None:
    """Read rows without unpacking them; None when they need to be looked at one by one.

    :raises ValueError: when some cannot be unpacked
    """
    values = rows.values()
    if values is None or not np.all((values >= 0) & (values <= MOST)):
        return None
    prefixes = rows.prefixes()
    numbers = list(map(flow_index.rows_by_prefix.get, prefixes))
    if None in numbers:
        for position, number in enumerate(numbers):
            if number is None and not _learn(rows[position], prefixes[position], flow_index):
                return None
        numbers = list(map(flow_index.rows_by_prefix.get, prefixes))
    return RowColumns(np.array(numbers, dtype=np.intp), values)


def _learn(row: Sequence[Any], prefix: bytes, flow_index: FlowIndex) -> bool:
    """Remember the number of ``row`` by its ``prefix``; False when it is not valid, or not encoded as ours are."""
    side, account, container, method, policy, device, *_ = row
    key = side, account, container, method, policy, device
    try:
        if row_prefix(key) != prefix:
            return False  # so the numbers may be elsewhere than `PackedRows.values` supposed
        flow_index.rows_by_prefix[prefix] = flow_index.row(key)
    except (TypeError, ValueError):
        return False
    return True


def _columns(rows: Sequence[Sequence[Any]], flow_index: FlowIndex) -> RowColumns:
    """Read unpacked rows.

    :raises ValueError: when some row is not valid
    :raises TypeError: likewise
    """
    if not rows:
        return RowColumns(np.empty(0, dtype=np.intp), np.empty((3, 0)))
    columns = tuple(zip(*rows, strict=True))
    if not all(issubclass(kind, _NUMBERS) for kind in set(map(type, chain(*columns[_KEY:])))):
        raise TypeError("not a number")
    values = np.array(columns[_KEY:], dtype=np.float64)
    if not np.all((values >= 0) & (values <= MOST)):
        raise ValueError("not a rate")
    numbers = list(map(flow_index.row, zip(*columns[:_KEY], strict=True)))
    return RowColumns(np.array(numbers, dtype=np.intp), values)


def _is_valid(row: Iterable[Any]) -> bool:
    *key, moved, opened, waiting = row
    try:
        numbers = all(isinstance(number, _NUMBERS) and 0 <= number <= MOST for number in (moved, opened, waiting))
        return numbers and is_valid_key(key)
    except (TypeError, ValueError):
        return False
