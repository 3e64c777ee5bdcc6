"""The response to SelectObjectContent: records in the requested format, in messages of the event stream encoding.

A message is: its length and that of its headers (4 bytes each, big endian), CRC-32 of these, headers, payload,
CRC-32 of all before.  A header is: length of its name (1 byte), name, 7 for text, length of the value
(2 bytes), value.
"""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from sluice_filters.csv.dialect import Dialect
from sluice_middleware.s3select.request import SelectRequest

#: Bytes of records in one message; S3 sends at most 1 MiB.
LARGEST: Final = 256 * 1024
_TEXT: Final = 7
#: Characters of an error's reason.
_LONGEST: Final = 4000


class Formatter:
    """Writes rows of csv_select as records of one answer: CSV, JSON or a count; ``full`` once the limit is reached."""

    def __init__(self, request: SelectRequest) -> None:
        self._request = request
        self._input = request.query.dialect
        self._left = request.statement.limit
        self._counted = 0
        output = request.output
        #: True where rows need no conversion unless they contain a quote.
        self._alike = (
            not output.json
            and not output.always_quoted
            and output.record_end == b"\n"
            and output.dialect.delimiter == self._input.delimiter
        )
        #: Parses the output of csv_select, whose last record may have a quote that is never closed.
        self._writes: Dialect = output.dialect
        self.full = self._left == 0

    def write(self, rows: bytes, header: Sequence[str] | None) -> bytes:
        """Return ``rows`` (whole records) in the requested format; ``header`` names all columns of the object."""
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
        """Return the output after the last row."""
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


def message(headers: Mapping[str, str], payload: bytes = b"") -> bytes:
    """One message."""
    block = b"".join(_header(name, value) for name, value in headers.items())
    prelude = struct.pack(">II", 16 + len(block) + len(payload), len(block))
    start = prelude + struct.pack(">I", zlib.crc32(prelude)) + block + payload
    return start + struct.pack(">I", zlib.crc32(start))


def _header(name: str, value: str) -> bytes:
    encoded = value.encode()
    return bytes((len(name),)) + name.encode() + struct.pack(">BH", _TEXT, len(encoded)) + encoded


def _event(kind: str, payload: bytes = b"", content_type: str = "") -> bytes:
    headers = {":message-type": "event", ":event-type": kind}
    if content_type:
        headers[":content-type"] = content_type
    return message(headers, payload)


def records(data: bytes) -> Iterator[bytes]:
    """Selected records, in as many messages as they need."""
    for place in range(0, len(data), LARGEST):
        yield _event("Records", data[place : place + LARGEST], "application/octet-stream")


def keep_alive() -> bytes:
    """A message that keeps the connection alive while the object is read."""
    return _event("Cont")


def figures(kind: str, scanned: int, processed: int, returned: int) -> bytes:
    """Bytes read, bytes after decompression, bytes of records.
    :param kind: ``Progress`` during the response, ``Stats`` at the end
        :param kind: ``Progress`` on the way, ``Stats`` at the end
    """
    inner = (
        f"<BytesScanned>{scanned}</BytesScanned><BytesProcessed>{processed}</BytesProcessed>"
        f"<BytesReturned>{returned}</BytesReturned>"
    )
    text = f'<?xml version="1.0" encoding="UTF-8"?><{kind}>{inner}</{kind}>'
    return _event(kind, text.encode(), "text/xml")


def end() -> bytes:
    """The last message; without it the response is not complete."""
    return _event("End")


def failure(code: str, text: str) -> bytes:
    """The message of an error after the response began."""
    return message({":message-type": "error", ":error-code": code, ":error-message": text[:_LONGEST]})
