"""Log records of the API, formatted as text lines or as one JSON object per line.

* One record of logger ``sluice_controller.requests`` for each request says method, route, path, status, milliseconds,
  who asked, and the request's id.  The query is left out, and so are headers and bodies: they may hold
  secrets.
* Every other record carries the id of the request that it was written for.
* A record is one line, whatever a caller put into a name; only tracebacks have more, and not in JSON.
"""

from __future__ import annotations

import contextvars
import json
import logging
import re
import uuid
from datetime import UTC, datetime
from typing import Any, Final

from sluice_core.logs import one_line

LINE: Final = "line"
JSON: Final = "json"
FORMATS: Final = (LINE, JSON)

#: The id of the request that this context serves.
current_request: Final[contextvars.ContextVar[str]] = contextvars.ContextVar("sluice_request", default="")
_GIVEN: Final = re.compile(r"req-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def request_id(given: str) -> str:
    """``given``, when it is a valid request id of OpenStack, so that one call can be followed through all services;
    else a new one."""
    return given if _GIVEN.fullmatch(given) else f"req-{uuid.uuid4()}"


class LineFormatter(logging.Formatter):
    """``2026-01-31 12:00:00,123 INFO logger [req-…] message``."""

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)s %(name)s [%(request)s] %(message)s")

    def formatMessage(self, record: logging.LogRecord) -> str:
        """Called by logging with the message filled in."""
        record.request = current_request.get() or "-"
        record.message = one_line(record.message)
        return super().formatMessage(record)


class JsonFormatter(logging.Formatter):
    """One object: time, level, logger, message, request; of a request also what ``access`` of the record says."""

    def format(self, record: logging.LogRecord) -> str:
        """Called by logging."""
        data: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            "process": record.process,
        }
        if current_request.get():
            data["request"] = current_request.get()
        data |= getattr(record, "access", {})
        if record.exc_info:
            data["traceback"] = self.formatException(record.exc_info)
        return json.dumps(data, ensure_ascii=True, default=str)


def logging_settings(log_format: str, level: str) -> dict[str, Any]:
    """For ``logging.config.dictConfig``: everything to standard error, gunicorn's own lines as well."""
    formatter = JsonFormatter if log_format == JSON else LineFormatter
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {"chosen": {"()": f"{formatter.__module__}.{formatter.__qualname__}"}},
        "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "chosen"}},
        "root": {"handlers": ["stderr"], "level": level.upper()},
        "loggers": {
            # what Django says of failed requests, we say ourselves and with the request's id
            "django.request": {"level": "CRITICAL"},
            "gunicorn.error": {"level": level.upper(), "propagate": True, "handlers": []},
            "gunicorn.access": {"level": "CRITICAL", "propagate": False, "handlers": []},
        },
    }
