"""From rows as csv_select gives them to records as an S3 client wants them: its CSV, JSON, a count, a limit."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

from sluice_filters.csv.dialect import Dialect
from sluice_middleware.s3select.request import SelectRequest


class Formatter:
    """Writes the records of one answer; ``full`` once the limit is reached."""

    def __init__(self, request: SelectRequest) -> None:
        self._request = request
        self._input = request.query.dialect
        self._left = request.statement.limit
        self._counted = 0
        output = request.output
        #: True where rows can go as they are unless they hold a quote.
        self._alike = (
            not output.json
            and not output.always_quoted
            and output.record_end == b"\n"
            and output.dialect.delimiter == self._input.delimiter
        )
        #: Reads what csv_select wrote, whose last record may be a quote that never ends.
        self._writes: Dialect = output.dialect
        self.full = self._left == 0

    def write(self, rows: bytes, header: Sequence[str] | None) -> bytes:
        """``rows`` (whole records) in the form that was asked for; ``header`` names all columns of the object."""
        if self.full or not rows:
            return b""
        if self._request.statement.count:
            self._counted += sum(1 for _ in self._input.records(rows))
            return b""
        quoted = any(one and one in rows for one in (self._input.quote, self._writes.quote))
        if self._alike and self._left is None and not quoted:
            return rows
        return b"".join(self._formatted(rows, header))

    def finish(self) -> bytes:
        """What comes after the last row."""
        if not self._request.statement.count or self._request.statement.limit == 0:
            return b""
        text = str(self._counted)
        if self._request.output.json:
            return json.dumps({"_1": self._counted}).encode() + self._request.output.record_end
        return self._writes.quoted(text.encode(), self._request.output.always_quoted) + self._request.output.record_end

    def _formatted(self, rows: bytes, header: Sequence[str] | None) -> Iterator[bytes]:
        output = self._request.output
        for record in self._input.records(rows):
            if self._left is not None:
                self._left -= 1
                self.full = self._left == 0
            values = [self._input.value(raw) for raw in self._input.fields(record)]
            if output.json:
                yield self._json(values, header) + output.record_end
            else:
                fields = [self._writes.quoted(value, output.always_quoted) for value in values]
                yield self._writes.delimiter.join(fields) + output.record_end
            if self.full:
                return

    def _json(self, values: Sequence[bytes], header: Sequence[str] | None) -> bytes:
        names = self._request.statement.names or header or ()
        texts = [value.decode("utf-8", "replace") for value in values]
        named = {names[place] if place < len(names) else f"_{place + 1}": text for place, text in enumerate(texts)}
        return json.dumps(named, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")
