"""Log records of the API, formatted as text lines or as one JSON object per line.

* One record of logger ``sluice_controller.requests`` for each request says method, route, path, status, milliseconds,
  who asked, and the request's id.  The query is left out, and so are headers and bodies: they may hold
  secrets.
* Every other record carries the id of the request that it was written for.
* A record is one line, whatever a caller put into a name; only tracebacks have more, and not in JSON.
"""

from __future__ import annotations

from typing import Any, Final

from sluice_core.process import logs

#: What :data:`sluice_core.process.logs.TEXT` was called here up to 0.1.
LINE: Final = "line"
FORMATS: Final = (*logs.FORMATS, LINE)


def logging_settings(log_format: str, level: str) -> dict[str, Any]:
    """For ``logging.config.dictConfig``: everything to standard error, gunicorn's own lines as well."""
    formatter = logs.JsonFormatter if log_format == logs.JSON else logs.TextFormatter
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
