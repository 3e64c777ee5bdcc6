"""csv_select on whole blocks at once, with pyarrow: the same bytes as the plain engine, much faster.

If every line is a record (``select_lines``) Arrow's CSV parser reads the fields that the condition needs, compute
kernels evaluate it, and the lines are kept unchanged.  Counting shows whether lines are records: a record that contains
line ends makes fewer records than lines.  Raw fields for a projection are cut from the kept lines.

Otherwise the text is masked first (``mask``, ``select_masked``).  For text that does not fit there either (records of
different numbers of fields, irregular quotes) the result is None, and the plain engine processes the block.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv as arrow_csv

from sluice_filters.csv import plain
from sluice_filters.csv.arrow_where import Columns, evaluate
from sluice_filters.csv.dialect import BYTE_ORDER_MARK, Dialect
from sluice_filters.csv.mask import Masked, mask
from sluice_filters.csv.query import Plan, check_added

#: Arrow's offsets are 32 bits wide.
_LARGEST: Final = 1 << 30


def select(plan: Plan, text: bytes) -> bytes | None:
    """Return the selection of ``plan`` from ``text``, which is whole records."""
    kept = select_lines(plan, text)
    if kept is None:
        masked = mask(plan.dialect, text)
        if masked is not None and masked.text.endswith(b"\n"):
            kept = select_masked(plan, masked)
    return kept


def select_lines(plan: Plan, records: bytes) -> bytes | None:
    """Return the selection of ``plan`` from ``records``, which ends with a line; None unless each line is a record."""
    dialect = plan.dialect
    text = _prepared(records)
    if not text:
        return text
    quoted = bool(dialect.quote) and dialect.quote in text
    if quoted and ((plan.where is None and plan.columns is not None) or not _closed(dialect, text)):
        return None
    wanted = plan.condition_columns() if quoted else sorted({*plan.condition_columns(), *(plan.columns or ())})
    fields = _parse(text, dialect, wanted, quoted)
    lines = _lines(text) if quoted or plan.columns is None else None
    if fields is None or (lines is not None and len(lines) != len(fields[-1])):
        return None
    keep = None if plan.where is None else evaluate(plan.where, Columns(fields))
    if lines is None:
        return _joined(_projected(plan, fields, keep))
    kept = _joined(lines if keep is None else lines.filter(keep))
    return kept if plan.columns is None else _project(replace(plan, where=None), kept)


def _project(plan: Plan, text: bytes) -> bytes:
    """Return the columns of selected records."""
    found = select(plan, text)
    return plain.select(plan, text) if found is None else found


def select_masked(plan: Plan, masked: Masked) -> bytes | None:
    """Return the selection of ``plan`` from the whole records in ``masked``; None if it cannot."""
    text = _prepared(masked.text, masked.lone)
    if not text:
        return text
    unquoted = replace(plan.dialect, quote=b"")
    wanted = sorted({*plan.condition_columns(), *(plan.columns or ())})
    fields = _parse(text, unquoted, wanted, quoted=False)
    if fields is None:
        return None
    keep = None
    if plan.where is not None:
        keep = evaluate(plan.where, Columns(fields, plan.dialect.quote, masked.pairs))
    if plan.columns is not None:
        return masked.restore(_joined(_projected(plan, fields, keep)))
    lines = _lines(text)
    return masked.restore(_joined(lines if keep is None else lines.filter(keep)))


def _prepared(text: bytes, lone: bytes = b"") -> bytes | None:
    """Return ``text`` in the form for Arrow: lines end with LF, the first is not empty; None when that is not possible.

    :param lone: stand-in for a CR that is data; without one such a CR is not possible: Arrow takes it for a line end
    """
    if b"\r" in text:
        text = text.replace(b"\r\n", b"\n")
        if b"\r" in text:
            if not lone:
                return None
            text = text.replace(b"\r", lone)
    if len(text) >= _LARGEST or text.startswith(BYTE_ORDER_MARK):  # Arrow drops a mark at the beginning
        return None
    return text.lstrip(b"\n")


def _closed(dialect: Dialect, text: bytes) -> bool:
    """Whether the last non-empty line ends outside of quotes, if it is a record."""
    place = len(text)
    while text[place - 1 : place] == b"\n":
        place -= 1
    last = text[text.rfind(b"\n", 0, place) + 1 : place + 1]
    return max(replace(dialect, multiline=True).ends(last), default=0) == len(last)


def _parse(text: bytes, dialect: Dialect, wanted: Sequence[int], quoted: bool) -> Mapping[int, Any] | None:
    """Return fields by position, as binary arrays, null if empty without quotes; None when the records differ in width.

    Position -1 always exists, for the number of rows.
    """
    names = [str(place) for place, _ in enumerate(dialect.fields(text[: text.index(b"\n")]))]
    included = [names[place] for place in wanted if place < len(names)]
    try:
        table = arrow_csv.read_csv(
            pa.BufferReader(text),
            arrow_csv.ReadOptions(use_threads=False, block_size=len(text) + 1, column_names=names),
            arrow_csv.ParseOptions(
                delimiter=dialect.delimiter.decode(),
                quote_char=dialect.quote.decode() if quoted else False,
                escape_char=False,
                newlines_in_values=quoted,
            ),
            arrow_csv.ConvertOptions(
                include_columns=included or names[:1],
                column_types=dict.fromkeys(included or names[:1], pa.binary()),
                null_values=[""],
                strings_can_be_null=True,
                quoted_strings_can_be_null=False,
                check_utf8=False,
            ),
        )
    except pa.ArrowInvalid:
        return None
    found = {int(name): table[name].combine_chunks() for name in included}
    found[-1] = table[(included or names)[0]].combine_chunks()
    return found


def _lines(text: bytes) -> Any:
    """Return the non-empty lines of ``text``."""
    offsets = struct.pack("=ii", 0, len(text))  # no copy
    whole = pa.Array.from_buffers(pa.binary(), 1, [None, pa.py_buffer(offsets), pa.py_buffer(text)])
    lines = pc.split_pattern(whole, b"\n").flatten()
    lines = lines.slice(0, len(lines) - 1)
    lengths = pc.binary_length(lines)
    return lines if pc.min(lengths).as_py() else lines.filter(pc.greater(lengths, 0))


def _projected(plan: Plan, fields: Mapping[int, Any], keep: Any) -> Any:
    """Return the kept rows with only the plan's columns."""
    kept = {place: field if keep is None else field.filter(keep) for place, field in fields.items()}
    check_added(len(kept[-1]) * sum(place not in kept for place in plan.columns or ()))
    empty = pa.repeat(pa.scalar(b"", pa.binary()), len(kept[-1]))
    parts = [kept.get(place, empty) for place in plan.columns or ()]
    filled = [part.fill_null(b"") if part.null_count else part for part in parts]
    return pc.binary_join_element_wise(*filled, plan.dialect.delimiter) if len(filled) > 1 else filled[0]


def _joined(rows: Any) -> bytes:
    if not len(rows):
        return b""
    whole = pa.ListArray.from_arrays(pa.array([0, len(rows)], pa.int32()), rows)
    return bytes(pc.binary_join(whole, b"\n")[0].as_buffer()) + b"\n"
