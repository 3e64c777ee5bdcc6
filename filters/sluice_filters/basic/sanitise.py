"""The filter that returns JPEG pictures and PDF documents without their metadata (Crystal, section 1.1).

Stored bytes do not change; for readers of the original, a narrower policy deletes the filter.  An object is collected
as a whole, since metadata may be at its end.  An object of such a type that has another format or cannot be read is
refused: otherwise a wrong type would circumvent the policy.
"""

from __future__ import annotations

from typing import ClassVar, Final

from sluice_core.describe import FILTER, ActionInfo, Parameter
from sluice_core.messages.predicate import Facts, Test, compile_predicate
from sluice_filters.api import Filter, FilterError, Hint, Stream
from sluice_filters.basic.document_formats import FORMATS

_MIB: Final = 1 << 20
#: Extensions and media types of sanitised objects, in the form of conditions on types.
_TYPES: Final = ["jpg", "jpeg", "jpe", "image/jpeg", "image/jpg", "image/pjpeg", "pdf", "application/pdf"]
_MATCHES: Final[Test] = compile_predicate(["type", _TYPES])
REFUSE, PASS = "refuse", "pass"


class Sanitise(Filter):
    """Returns pictures and documents without their metadata."""

    info: ClassVar[ActionInfo] = ActionInfo(
        keyword="sanitise",
        kind=FILTER,
        help="give JPEG pictures and PDF documents without their metadata",
        parameters=(
            Parameter(
                "max_size", "size", "larger objects are not looked into", 64 * _MIB, minimum=1, maximum=1024 * _MIB
            ),
            Parameter(
                "otherwise",
                "str",
                "what becomes of larger, damaged and encrypted objects: refused with 503, or passed as they are",
                default=REFUSE,
                choices=(REFUSE, PASS),
            ),
        ),
        stage=220,
        on_put=False,
        on_get=True,
        changes_content=True,
        changes_length=True,
        needs_whole_object=True,
    )
    heavy: ClassVar[bool] = True
    reproducible: ClassVar[bool] = False

    def reads(self, hint: Hint) -> bool:
        return _MATCHES(Facts("GET", hint.name, hint.size, hint.content_type)) is True

    def reader(self, hint: Hint) -> Stream:
        limit, lenient = int(self.params["max_size"] or 0), self.params["otherwise"] == PASS
        if hint.size is not None and hint.size > limit:
            return _too_large(limit, lenient)
        return _Cleaned(limit, lenient)


def _too_large(limit: int, lenient: bool) -> Stream:
    """Return the stream for an object above the limit.

    :raises FilterError: unless it may pass
    """
    if lenient:
        return Stream()
    raise FilterError(f"`sanitise` looks into objects of at most {limit} bytes")


class _Cleaned(Stream):
    """Collects one object and returns it cleaned at the end."""

    gather: int = _MIB

    def __init__(self, limit: int, lenient: bool) -> None:
        self._limit = limit
        self._lenient = lenient
        self._held = bytearray()
        self._passing = False

    def feed(self, data: bytes) -> bytes:
        if self._passing:
            return data
        self._held += data
        if len(self._held) <= self._limit:
            return b""
        _too_large(self._limit, self._lenient)
        self._passing = True
        held, self._held = bytes(self._held), bytearray()
        return held

    def finish(self) -> bytes:
        data = bytes(self._held)
        if self._passing or not data:
            return data
        clean = next((clean for matches, clean in FORMATS.values() if matches(data)), None)
        try:
            if clean is None:
                raise FilterError("the object is neither JPEG nor PDF, as its type says")
            return clean(data)
        except FilterError as error:
            if self._lenient:
                return data
            raise FilterError(f"`sanitise`: {error}") from error
