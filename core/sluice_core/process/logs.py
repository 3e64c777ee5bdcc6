"""Log records of Sluice: one line each, whatever characters the name of an object has.

Names may hold any character: Swift's own hidden containers have a NUL in theirs (``\\0versions\\0photos``), and a line
feed would begin another line.  So control characters are escaped (``\\x00versions\\x00photos``) when a record is made,
in every process and for every formatter.

* A process of Sluice calls :func:`start_logging`, which quotes the records of libraries, too.
* In Swift's servers Sluice's middlewares call :func:`quote_our_records`; Swift's own records are unchanged.

A record has the context of the process: the fields of :func:`log_fields`.  In text they stand in brackets before the
message, in JSON they are fields of the object.  Fields are ``request`` (the id of a call, which travels with the calls
that it makes), ``operation`` and ``rewrite`` (the ids of jobs).  Threads and green threads start without fields, except
with those of :func:`with_log_fields`; tasks of asyncio inherit them.
"""

from __future__ import annotations

import contextlib
import contextvars
import functools
import json
import logging
import re
import uuid
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Any, Final, ParamSpec, TypeVar

from sluice_core.options import Option, OptionError

P = ParamSpec("P")
T = TypeVar("T")

FORM: Final = "%(asctime)s %(levelname)s %(name)s:%(context)s %(message)s"
#: Lines of text, and one JSON object per line.
TEXT: Final = "text"
JSON: Final = "json"
FORMATS: Final = (TEXT, JSON)
LOG_FORMAT: Final = Option("log_format", TEXT, "text for people, json for machines: one object per line")
#: Prefixes of the names of Sluice's loggers: those of modules, and those that Swift makes for Sluice's middlewares.
#: Messages of Sluice through a logger of Swift begin with the prefix themselves.
OURS: Final = "sluice"
#: The header in which services of OpenStack send the id of a request.
REQUEST_ID: Final = "X-Openstack-Request-Id"
_REQUEST: Final = "request"
_CONTROL: Final = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029]")
#: Swift's formatter writes this for a line feed in the tracebacks that it formats itself.
_SWIFTS_LINE_FEED: Final = "#012"
#: A traceback has several lines, which are indented.
_CONTROL_OF_TRACEBACK: Final = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029]")
_GIVEN: Final = re.compile(r"req-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_fields: Final[contextvars.ContextVar[Mapping[str, str]]] = contextvars.ContextVar(
    "sluice_log_fields", default=MappingProxyType({})
)


def one_line(text: str) -> str:
    """Return ``text`` with its control characters escaped."""
    return _CONTROL.sub(_written_out, text)


def request_id(given: str) -> str:
    """``given``, when it is a valid request id of OpenStack, so that one call can be followed through all services;
    else a new one."""
    return given if _GIVEN.fullmatch(given) else f"req-{uuid.uuid4()}"


@contextlib.contextmanager
def log_fields(**fields: str) -> Iterator[None]:
    """Give ``fields`` to all records that are made within the block, besides those of the enclosing blocks.

    A field without a value is left out.
    """
    before = _fields.set({**_fields.get(), **{name: value for name, value in fields.items() if value}})
    try:
        yield
    finally:
        _fields.reset(before)


def with_log_fields(function: Callable[P, T]) -> Callable[P, T]:
    """``function``, for another thread to call: its records have the fields of the present block."""
    fields = _fields.get()
    if not fields:
        return function

    @functools.wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> T:
        with log_fields(**fields):
            return function(*args, **kwargs)

    return call


def current_request() -> str:
    """The id of the present request; empty without one."""
    return _fields.get().get(_REQUEST, "")


class TextFormatter(logging.Formatter):
    """``2026-01-31 12:00:00,123 INFO logger: [req-…] message``, or another ``form`` with ``%(context)s``."""

    def __init__(self, form: str = FORM) -> None:
        super().__init__(form)

    def formatMessage(self, record: logging.LogRecord) -> str:
        """logging calls this with the message filled in."""
        fields = _fields.get()
        record.context = one_line(f" [{' '.join(fields.values())}]") if fields else ""
        record.message = one_line(record.message)
        return super().formatMessage(record)


class JsonFormatter(logging.Formatter):
    """One object: time, level, logger, message, process, and the fields of the context; then ``access`` of the record,
    which the API gives to those of its requests."""

    def format(self, record: logging.LogRecord) -> str:
        """Called by logging."""
        data: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            "process": record.process,
            **_fields.get(),
        }
        data |= getattr(record, "access", {})
        if record.exc_info:
            data["traceback"] = self.formatException(record.exc_info)
        return json.dumps(data, ensure_ascii=True, default=str)


def start_logging(level: str, log_format: str = TEXT, form: str = FORM) -> None:
    """Log to standard error, in lines without control characters; called once, by a process of Sluice.

    :param form: the format of a line in :data:`TEXT`
    :raises OptionError: when the level or format is unknown
    """
    number = logging.getLevelNamesMapping().get(level.upper())
    if number is None:
        raise OptionError(f"option `log_level` is `{level}`, expected debug, info, warning or error")
    if log_format not in FORMATS:
        raise OptionError(f"option `log_format` is `{log_format}`, expected {' or '.join(FORMATS)}")
    handler = logging.StreamHandler()
    handler.setFormatter(JsonFormatter() if log_format == JSON else TextFormatter(form))
    logging.basicConfig(level=number, handlers=[handler])  # noqa: TID251
    logging.setLogRecordFactory(QuotingRecordFactory(""))


def quote_our_records() -> None:
    """Escape control characters in the records of Sluice's loggers in a process of another program."""
    standing = logging.getLogRecordFactory()
    if not isinstance(standing, QuotingRecordFactory):
        logging.setLogRecordFactory(QuotingRecordFactory(OURS, _SWIFTS_LINE_FEED, standing))


class QuotingRecordFactory:
    """Makes log records; those of Sluice, and of loggers whose names begin with ``prefix``, have no control characters.

    :param line_feed: separates the lines of a traceback
    :param make: makes the record
    """

    def __init__(
        self, prefix: str, line_feed: str = "\n", make: Callable[..., logging.LogRecord] = logging.LogRecord
    ) -> None:
        self._make = make
        self._prefix = prefix
        self._line_feed = line_feed

    def __call__(self, name: str, *given: Any, **more: Any) -> logging.LogRecord:
        """logging calls this for each record."""
        record = self._make(name, *given, **more)
        if name.startswith(self._prefix) or str(record.msg).startswith(OURS):
            self._quote(record)
        return record

    def _quote(self, record: logging.LogRecord) -> None:
        """Escape its message and traceback; most records have no control characters and stay as they are."""
        try:
            message = record.getMessage()
        except (TypeError, ValueError):  # the handler reports arguments that do not fit
            return
        if _CONTROL.search(message):
            record.msg, record.args = one_line(message), None
        if record.exc_info and record.exc_info[0] is not None:
            text = logging.Formatter().formatException(record.exc_info)
            if _CONTROL_OF_TRACEBACK.search(text):
                record.exc_text = _CONTROL_OF_TRACEBACK.sub(_written_out, text).replace("\n", self._line_feed)


def _written_out(match: re.Match[str]) -> str:
    return match[0].encode("unicode_escape").decode()
