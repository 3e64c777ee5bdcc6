"""The rewriter's options, declared once."""

from __future__ import annotations

import configparser
from typing import Any, Final

from sluice_core.options import Option, OptionError, read_options
from sluice_middleware.wsgi.worker_context import OPTIONS as WORKER_OPTIONS

SECTION: Final = "rewriter"
OPTIONS: Final = (
    Option("redis_url", "redis://127.0.0.1:6379/0", "where Redis is"),
    Option("redis_prefix", "sluice", "what all of this cluster's keys in Redis begin with"),
    Option("concurrency", 4, "objects that are rewritten at a time"),
    *(option for option in WORKER_OPTIONS if option.name != "agent_socket"),
    Option("log_level", "info", "debug, info, warning or error"),
)


def read_settings(path: str) -> dict[str, Any]:
    """The options of ``[rewriter]`` in the file at ``path``, whose ``[DEFAULT]`` is Swift's.

    :raises OptionError: when it cannot be read or an option in it cannot be used
    """
    parser = configparser.ConfigParser(interpolation=None, default_section="")
    try:
        with open(path, encoding="utf-8") as file:
            parser.read_file(file)
    except (OSError, configparser.Error, UnicodeDecodeError) as error:
        raise OptionError(f"cannot read `{path}`: {error}") from error
    given = dict(parser[SECTION]) if SECTION in parser else {}
    values = read_options(OPTIONS, given, f"{path} [{SECTION}]")
    if values["concurrency"] < 1:
        raise OptionError(f"option `concurrency` is `{values['concurrency']}`, expected at least 1")
    return values
