"""Log records of the API, formatted as text lines or as one JSON object per line.

* One record of logger ``sluice_controller.requests`` for each request has its method, route, path, status,
  milliseconds, the caller, and the request's id.  The query, headers and bodies are left out, because they may contain
  secrets.
* Every other record has the id of the request that it was written for.
* A record is one line, whatever text a name contains; only tracebacks have more, and not in JSON.
"""

from __future__ import annotations

from typing import Any, Final

from sluice_core.process import logs

#: The name of :data:`sluice_core.process.logs.TEXT` up to version 0.1.
LINE: Final = "line"
FORMATS: Final = (*logs.FORMATS, LINE)


def logging_settings(log_format: str, level: str) -> dict[str, Any]:
    """The input of ``logging.config.dictConfig``: everything to standard error, gunicorn's own lines as well."""
    formatter = logs.JsonFormatter if log_format == logs.JSON else logs.TextFormatter
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {"chosen": {"()": f"{formatter.__module__}.{formatter.__qualname__}"}},
        "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "chosen"}},
        "root": {"handlers": ["stderr"], "level": level.upper()},
        "loggers": {
            # Sluice logs failed requests itself, with the request's id.
            "django.request": {"level": "CRITICAL"},
            "gunicorn.error": {"level": level.upper(), "propagate": True, "handlers": []},
            "gunicorn.access": {"level": "CRITICAL", "propagate": False, "handlers": []},
        },
    }
