"""What daemons share that work through a Swift proxy application of their own: configuration, log, application."""

from __future__ import annotations

import configparser
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from sluice_core.options import Option, OptionError, read_options
from sluice_middleware.swift import internal_api
from sluice_middleware.wsgi.response import App
from sluice_middleware.wsgi.worker_context import OPTIONS as WORKER_OPTIONS

#: Where Redis is.
REDIS_OPTIONS: Final = (
    Option("redis_url", "redis://127.0.0.1:6379/0", "where Redis is"),
    Option("redis_prefix", "sluice", "what all of this cluster's keys in Redis begin with"),
)
#: Snapshot, keys and code of the node, and the log.
NODE_OPTIONS: Final = (
    *(option for option in WORKER_OPTIONS if option.name != "agent_socket"),
    Option("log_level", "info", "debug, info, warning or error"),
)

#: Swift's internal accounts are made when something is put into them.
_SWIFT_DEFAULTS: Final = {"account_autocreate": "true"}
#: What stands in the same file: a proxy application that nobody but the daemon asks.
SWIFT_SAMPLE: Final = """
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


def read_section(path: str, section: str, options: Sequence[Option]) -> dict[str, Any]:
    """The options of a section in the file at ``path``, whose ``[DEFAULT]`` is Swift's.

    :raises OptionError: when it cannot be read or an option in it cannot be used
    """
    parser = configparser.ConfigParser(interpolation=None, default_section="")
    try:
        with open(path, encoding="utf-8") as file:
            parser.read_file(file)
    except (OSError, configparser.Error, UnicodeDecodeError) as error:
        raise OptionError(f"cannot read `{path}`: {error}") from error
    given = dict(parser[section]) if section in parser else {}
    return read_options(options, given, f"{path} [{section}]")


def load_app(path: str) -> App:
    """Swift's proxy application out of the same file.

    :raises OptionError: when it has none, or one with a gatekeeper, which takes our headers off
    """
    try:
        app: App = internal_api.loadapp(str(Path(path).resolve()), _SWIFT_DEFAULTS, allow_modify_pipeline=False)
        internal_api.InternalClient.check_gatekeeper_not_loaded(app)
    except (LookupError, ValueError, OSError) as error:
        raise OptionError(f"`{path}` describes no proxy application: {error}") from error
    return app


def final_app(app: App) -> Any:
    """What stands at the end of the pipeline of :func:`load_app`: Swift's proxy itself, which has the rings."""
    return app._pipeline_final_app  # type: ignore[attr-defined]  # as Swift's InternalClient takes it


def cache_of(app: App) -> Any:
    """Swift's cache in the pipeline of :func:`load_app`; None without one."""
    pipeline = app._pipeline  # type: ignore[attr-defined]
    return next((one.memcache for one in pipeline if hasattr(one, "memcache")), None)
