"""Options of the API, declared once, and the one object that everything reads them from."""

from __future__ import annotations

import os
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Final, Self

from sluice_core.code_shelf import OPTIONS as CODE_OPTIONS
from sluice_core.options import Option, read_file

SECTION: Final = "api"
#: Names the configuration file to the worker processes; nothing else is passed on.
CONFIG_VARIABLE: Final = "SLUICE_API_CONFIG"

OPTIONS: Final = (
    Option("bind", "127.0.0.1:8877", "loopback address and port to listen on; a static token goes no further"),
    Option("redis_url", "redis://127.0.0.1:6379/0", "Redis that holds policies and assignments"),
    Option("redis_prefix", "sluice", "prefix of all keys; agents and actor hosts use the same one"),
    Option("token_file", "/etc/sluice/token", "file with the admin token; mode 0600"),
    Option("workers", 2, "processes"),
    Option("threads", 4, "threads of each process; one less can wait for a roll-out"),
    Option("log_level", "info", "debug, info, warning or error"),
    Option("default_tenant", "", "tenant of a container that is named without one; empty refuses such names"),
    Option("body_limit", 1 << 20, "largest request body, in bytes"),
    Option("text_limit", 16384, "longest policy text, in characters"),
    Option("node_timeout", 15.0, "seconds without a report after which a node counts as away"),
    Option(
        "erasure_coded",
        "",
        "containers of erasure-coded storage policies, as account/container separated by commas; `*` for not all "
        "listed, empty for none",
    ),
    *CODE_OPTIONS,
    Option("code_limit", 64 << 20, "largest code of a filter, in bytes"),
)


@dataclass(frozen=True, slots=True)
class Config:
    """The values of :data:`OPTIONS`; ``source`` is the file they came from."""

    bind: str
    redis_url: str
    redis_prefix: str
    token_file: str
    workers: int
    threads: int
    log_level: str
    default_tenant: str
    body_limit: int
    text_limit: int
    node_timeout: float
    erasure_coded: str
    code_auth_url: str
    code_user: str
    code_key_file: str
    code_container: str
    code_limit: int
    source: str = ""

    @classmethod
    def defaults(cls, **changes: Any) -> Self:
        """The defaults, with ``changes``."""
        return cls(**{option.name: option.default for option in OPTIONS} | changes)

    @classmethod
    def read(cls, path: str | Path) -> Self:
        """The options of ``[api]`` in ``path``.

        :raises OptionError: when the file or an option in it cannot be used
        """
        return cls.defaults(**read_file(OPTIONS, path, SECTION), source=str(path))

    @classmethod
    def from_environment(cls) -> Self:
        """The file that the environment names, or the defaults."""
        path = os.environ.get(CONFIG_VARIABLE)
        return cls.read(path) if path else cls.defaults()


assert {field.name for field in fields(Config)} - {"source"} == {option.name for option in OPTIONS}
