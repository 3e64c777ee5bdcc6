"""Options of the API, declared once, and the one object that everything reads them from."""

from __future__ import annotations

import os
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Final, Self

from sluice_core.code.swift_code_store import OPTIONS as CODE_OPTIONS
from sluice_core.options import Option, read_file

SECTION: Final = "api"
KEYSTONE: Final = "keystone"
STATIC: Final = "token"
#: Names the configuration file to the worker processes; nothing else is passed on.
CONFIG_VARIABLE: Final = "SLUICE_API_CONFIG"

OPTIONS: Final = (
    Option("bind", "127.0.0.1:8877", "address and port to listen on; a static token is served on loopback alone"),
    Option("auth", KEYSTONE, "who says who asks: keystone, or token for the one static token of a development machine"),
    Option("redis_url", "redis://127.0.0.1:6379/0", "Redis that holds policies and assignments"),
    Option("redis_prefix", "sluice", "prefix of all keys; agents and actor hosts use the same one"),
    Option("token_file", "/etc/sluice/token", "auth = token: file with the admin token; mode 0600"),
    Option(
        "keystone_file",
        "",
        "auth = keystone: file with a section [keystone_authtoken], the options of keystonemiddleware; empty for this "
        "file; it holds a password, so others must not read it",
    ),
    Option("policy_file", "", "oslo.policy file with other rules than those of sluice-api --sample-policy"),
    Option("reseller_prefix", "AUTH_", "what Swift puts before a project's id to make its account"),
    Option("self_service", "", "keywords, separated by commas, that members may use for their own containers"),
    Option("workers", 2, "processes"),
    Option("threads", 4, "threads of each process; one less can wait for a roll-out"),
    Option("log_level", "info", "debug, info, warning or error"),
    Option("log_format", "line", "line for people, json for machines: one object per line"),
    Option("default_tenant", "", "tenant of a container that is named without one; empty refuses such names"),
    Option("body_limit", 1 << 20, "largest request body, in bytes"),
    Option("import_limit", 16 << 20, "largest document for PUT /import, in bytes"),
    Option("text_limit", 16384, "longest policy text, in characters"),
    Option("node_timeout", 15.0, "seconds without a report after which a node counts as away"),
    Option(
        "erasure_coded",
        "",
        "containers of erasure-coded storage policies, as account/container separated by commas; `*` for not all "
        "listed, empty for none",
    ),
    Option("swift_url", "", "a Swift proxy with `list_endpoints`, for locality and storage policies; empty: none"),
    Option("swift_dir", "", "folder of Swift's rings and swift.conf, for zones and fragments of objects; empty: none"),
    Option("swift_user", "", "auth = token: the Swift user that creates containers; with keystone it is whoever asks"),
    Option("swift_key_file", "", "file with that user's key; mode 0600"),
    *CODE_OPTIONS,
    Option("code_limit", 64 << 20, "largest code of a filter, in bytes"),
)


@dataclass(frozen=True, slots=True)
class Config:
    """The values of :data:`OPTIONS`; ``source`` is the file they came from."""

    bind: str
    auth: str
    redis_url: str
    redis_prefix: str
    token_file: str
    keystone_file: str
    policy_file: str
    reseller_prefix: str
    self_service: str
    workers: int
    threads: int
    log_level: str
    log_format: str
    default_tenant: str
    body_limit: int
    import_limit: int
    text_limit: int
    node_timeout: float
    erasure_coded: str
    swift_url: str
    swift_dir: str
    swift_user: str
    swift_key_file: str
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

    @property
    def keystone_source(self) -> str:
        """The file with ``[keystone_authtoken]``."""
        return self.keystone_file or self.source

    @property
    def self_service_words(self) -> frozenset[str]:
        """The keywords of ``self_service``, in lower case."""
        return frozenset(filter(None, (word.strip().lower() for word in self.self_service.split(","))))

    @classmethod
    def from_environment(cls) -> Self:
        """The file that the environment names, or the defaults."""
        path = os.environ.get(CONFIG_VARIABLE)
        return cls.read(path) if path else cls.defaults()


assert {field.name for field in fields(Config)} - {"source"} == {option.name for option in OPTIONS}
