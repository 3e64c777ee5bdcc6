"""The exact definition of CSV; every engine returns these bytes.

* A record ends with LF; one CR before it (or at the very end of the object) belongs to the end.  A
  record without bytes is skipped.  A UTF-8 byte order mark before the first record is dropped.
* Fields are separated by one byte, ``delimiter``.  A field whose first byte is ``quote`` reaches to
  the next quote that is not doubled, and from there to the next delimiter; delimiters and, when
  ``multiline``, line ends inside are data.  A quote elsewhere in a field is data.  A quoted field that
  never ends reaches to the end of the object, or of the line when not ``multiline``.
* The *raw* field is its stored bytes, quotes included: raw fields are written.  Its *value*, which comparisons use, has
  quotes removed and doubled quotes single.
* Every record is written with LF at its end.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from sluice_filters.api import BadParameter

BYTE_ORDER_MARK: Final = b"\xef\xbb\xbf"
_SPELLED: Final = {"tab": "\t", "\\t": "\t", "comma": ",", "semicolon": ";", "pipe": "|", "space": " "}
#: Repeats a group that matches in only one way.  A possessive group keeps no backtracking state, which is some 60 bytes
#: for each byte of a long record; Python before 3.11.5 matches such groups wrongly (CPython issue 106052).
_MANY: Final = b"*+" if sys.version_info >= (3, 11, 5) else b"*"
_QUOTES: Final = {"none": "", "double": '"', "single": "'"}


@dataclass(frozen=True, slots=True)
class Dialect:
    """One form of CSV; ``quote`` is empty when there is none."""

    delimiter: bytes = b","
    quote: bytes = b'"'
    multiline: bool = True
    _record: re.Pattern[bytes] = field(init=False, repr=False, compare=False)
    _field: re.Pattern[bytes] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        field_pattern = self._one_field()
        delimiter = re.escape(self.delimiter)
        object.__setattr__(
            self, "_field", re.compile(rb"(" + field_pattern + rb")(?:" + delimiter + rb"|\Z)", re.DOTALL)
        )
        record = rb"(?:" + field_pattern + delimiter + rb")" + _MANY + field_pattern + rb"\n"
        object.__setattr__(self, "_record", re.compile(record, re.DOTALL))

    def _one_field(self) -> bytes:
        """A pattern for one raw field, quoted or not, up to its end.

        It matches in only one way, independently of the text behind it.
        """
        delimiter = re.escape(self.delimiter)
        plain = rb"[^" + delimiter + rb"\n]*+"
        if not self.quote:
            return plain
        quote = re.escape(self.quote)
        data = rb"[^" + quote + rb"]*+"
        inside = data + rb"(?:" + quote * 2 + data + rb")" + _MANY
        no_quote = rb"(?!" + quote + rb")"
        return rb"(?:" + quote + inside + quote + no_quote + plain + rb"|" + no_quote + plain + rb")"

    @classmethod
    def from_parameters(cls, delimiter: str = ",", quote: str = '"', multiline: bool = True) -> Dialect:
        """Return the dialect of these parameters; some are words: ``tab``, ``none`` ...

        :raises BadParameter: for values other than a single ASCII character
        """
        mark = _SPELLED.get(delimiter.lower(), delimiter)
        quoted = _QUOTES.get(quote.lower(), quote)
        for name, value in (("delimiter", mark), ("quote", quoted)):
            wrong = len(value) != 1 or not value.isascii() or value in "\r\n\0"
            if wrong and (name == "delimiter" or value):
                raise BadParameter(f"`{name}` is `{value}`, expected one ASCII character")
        if mark == quoted:
            raise BadParameter(f"`delimiter` and `quote` are both `{mark}`")
        return cls(mark.encode(), quoted.encode(), multiline)

    def joins_lines(self, text: bytes) -> bool:
        """Whether a line end in ``text`` may be inside a field."""
        return self.multiline and bool(self.quote) and self.quote in text

    def ends(self, text: bytes, start: int = 0) -> Iterator[int]:
        """Yield the end of each complete record of ``text`` (behind its LF); a record begins at ``start``."""
        if not self.joins_lines(text):
            while (start := text.find(b"\n", start) + 1) > 0:
                yield start
            return
        while (found := self._record.match(text, start)) is not None:
            start = found.end()
            yield start

    def complete(self, text: bytes) -> int:
        """Return the length of the complete records in ``text``; a record begins at 0."""
        if not self.joins_lines(text):
            return text.rfind(b"\n") + 1
        return max(self.ends(text), default=0)

    def first_from(self, text: bytes, place: int) -> int:
        """Return the beginning of the first record at ``place`` or later, or the end of ``text``."""
        if place <= 0:
            return 0
        if not self.joins_lines(text):
            found = text.find(b"\n", place - 1) + 1
            return found or len(text)
        return next((end for end in self.ends(text) if end >= place), len(text))

    def located(self, text: bytes, start: int = 0) -> Iterator[tuple[int, bytes]]:
        """Yield the records of ``text`` from ``start`` on, as :meth:`records`, each with its first byte's offset."""
        for end in self.ends(text, start):
            record = text[start : end - 1].removesuffix(b"\r")
            if record:
                yield start, record
            start = end
        if start < len(text):  # a quoted field without its end
            record = text[start:].removesuffix(b"\n").removesuffix(b"\r")
            if record:
                yield start, record

    def records(self, text: bytes) -> Iterator[bytes]:
        """Yield the records of ``text``, which ends with one, without their ends; empty ones are left out."""
        return (record for _, record in self.located(text))

    def fields(self, record: bytes) -> list[bytes]:
        """Return the raw fields of ``record``, at least one."""
        if not self.quote or self.quote not in record:
            return record.split(self.delimiter)
        fields: list[bytes] = []
        place = 0
        while (field := self._field.match(record, place)) is not None:
            fields.append(field[1])
            place = field.end()
            if place == field.end(1):
                return fields
        fields.append(record[place:])  # a quoted field without its end
        return fields

    def value(self, raw: bytes) -> bytes:
        """Return the value of a raw field."""
        if not self.quote or not raw.startswith(self.quote):
            return raw
        doubled = self.quote * 2
        place = 1
        while (place := raw.find(self.quote, place)) >= 0 and raw[place : place + 2] == doubled:
            place += 2
        if place < 0:
            return raw[1:].replace(doubled, self.quote)
        return raw[1:place].replace(doubled, self.quote) + raw[place + 1 :]

    def quoted(self, value: bytes, always: bool = False) -> bytes:
        """Return a raw field with this ``value``: in quotes when necessary, or ``always``."""
        if not self.quote:
            return value
        special = (self.delimiter, self.quote, b"\n", b"\r")
        if always or any(one in value for one in special):
            return self.quote + value.replace(self.quote, self.quote * 2) + self.quote
        return value
