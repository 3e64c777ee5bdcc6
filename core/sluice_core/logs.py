"""Records of our loggers: one line each, whatever stands in the name of an object.

Names may hold any character: Swift's own hidden containers have a NUL in theirs (``\\0versions\\0photos``), and a line
feed would begin a line of its own.  So control characters are written out (``\\x00versions\\x00photos``) when a record
is made: in whatever process that is, and whoever formats it.

* A process of ours calls :func:`start_logging`, which quotes the records of libraries, too.
* In Swift's servers our middlewares call :func:`quote_our_records`: what Swift logs is Swift's.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable
from typing import Any, Final

from sluice_core.options import OptionError

FORM: Final = "%(asctime)s %(levelname)s %(name)s: %(message)s"
#: What the names of our loggers begin with: those of modules, and those that Swift makes for our middlewares.  What we
#: say by a logger of Swift's begins so itself.
OURS: Final = "sluice"
_CONTROL: Final = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029]")
#: What Swift's formatter writes for a line feed in the tracebacks that it formats itself.
_SWIFTS_LINE_FEED: Final = "#012"
#: A traceback has several lines, which are indented.
_CONTROL_OF_TRACEBACK: Final = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029]")


def one_line(text: str) -> str:
    """``text`` with its control characters written out."""
    return _CONTROL.sub(_written_out, text)


def start_logging(level: str, form: str = FORM) -> None:
    """Log to standard error, in lines without control characters; called once, by a process of ours.

    :raises OptionError: when there is no such level
    """
    number = logging.getLevelNamesMapping().get(level.upper())
    if number is None:
        raise OptionError(f"option `log_level` is `{level}`, expected debug, info, warning or error")
    logging.basicConfig(level=number, format=form)  # noqa: TID251
    logging.setLogRecordFactory(QuotingRecordFactory(""))


def quote_our_records() -> None:
    """Escape control characters in what our loggers write in a process of another program."""
    standing = logging.getLogRecordFactory()
    if not isinstance(standing, QuotingRecordFactory):
        logging.setLogRecordFactory(QuotingRecordFactory(OURS, _SWIFTS_LINE_FEED, standing))


class QuotingRecordFactory:
    """Makes log records; ours, and those of loggers whose names begin with ``prefix``, have no control characters.

    :param line_feed: what parts the lines of a traceback that had some
    :param make: makes the record
    """

    def __init__(
        self, prefix: str, line_feed: str = "\n", make: Callable[..., logging.LogRecord] = logging.LogRecord
    ) -> None:
        self._make = make
        self._prefix = prefix
        self._line_feed = line_feed

    def __call__(self, name: str, *given: Any, **more: Any) -> logging.LogRecord:
        """Called by logging for each record that is wanted."""
        record = self._make(name, *given, **more)
        if name.startswith(self._prefix) or str(record.msg).startswith(OURS):
            self._quote(record)
        return record

    def _quote(self, record: logging.LogRecord) -> None:
        """Write out what is in its message and traceback; most records have nothing there and stay as they are."""
        try:
            message = record.getMessage()
        except (TypeError, ValueError):  # arguments that do not fit: its handler says so
            return
        if _CONTROL.search(message):
            record.msg, record.args = one_line(message), None
        if record.exc_info and record.exc_info[0] is not None:
            text = logging.Formatter().formatException(record.exc_info)
            if _CONTROL_OF_TRACEBACK.search(text):
                record.exc_text = _CONTROL_OF_TRACEBACK.sub(_written_out, text).replace("\n", self._line_feed)


def _written_out(match: re.Match[str]) -> str:
    return match[0].encode("unicode_escape").decode()
