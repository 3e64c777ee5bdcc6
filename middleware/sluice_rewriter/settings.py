"""The rewriter's options, declared once."""

from __future__ import annotations

import configparser
from typing import Any, Final

from sluice_core.options import Option, OptionError, read_options, sample_section
from sluice_middleware.wsgi.worker_context import OPTIONS as WORKER_OPTIONS

SECTION: Final = "rewriter"
OPTIONS: Final = (
    Option("redis_url", "redis://127.0.0.1:6379/0", "where Redis is"),
    Option("redis_prefix", "sluice", "what all of this cluster's keys in Redis begin with"),
    Option("concurrency", 4, "objects that are rewritten at a time"),
    *(option for option in WORKER_OPTIONS if option.name != "agent_socket"),
    Option("log_level", "info", "debug, info, warning or error"),
)

#: What stands in the same file: a proxy application that nobody but this daemon asks.
_SWIFT: Final = """
[DEFAULT]
swift_dir = /etc/swift

[pipeline:main]
# no gatekeeper, no authorization, nothing that interprets objects, and no Sluice
pipeline = cache proxy-server

[filter:cache]
use = egg:swift#memcache

[app:proxy-server]
use = egg:swift#proxy
"""


def sample_file() -> str:
    """A whole configuration with the defaults."""
    return sample_section(SECTION, OPTIONS) + _SWIFT


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
