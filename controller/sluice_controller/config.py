"""Options of the API, declared once, and the object that all modules read them from."""

from __future__ import annotations

import os
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Final, Self, TypeVar

from sluice_code.swift_code_store import OPTIONS as CODE_OPTIONS
from sluice_core.options import Option, read_files
from sluice_core.process.logs import LOG_FORMAT
from sluice_volumes.cinder.service import OPTIONS as CINDER_OPTIONS

SECTION: Final = "api"
KEYSTONE: Final = "keystone"
STATIC: Final = "token"
#: The default of the option of this name in Swift's keystoneauth.
OPERATOR_ROLES: Final = "admin, swiftoperator"
#: The environment variable with the configuration files for worker processes, in the form of PATH.
CONFIG_VARIABLE: Final = "SLUICE_API_CONFIG"

_SHARED: Final = {option.name: option for option in (*CODE_OPTIONS, *CINDER_OPTIONS)}

T = TypeVar("T")


def _option(default: T, meaning: str) -> T:
    """A field that is an option of the file."""
    return field(default=default, metadata={"default": default, "help": meaning})


def _shared(name: str) -> str:
    """An option that agents or actor hosts have too."""
    return _option(str(_SHARED[name].default), _SHARED[name].help)


@dataclass(frozen=True, slots=True)
class Config:
    """The options of the files with their defaults; ``source`` has the files, in the form of PATH."""

    bind: str = _option("127.0.0.1:8877", "address and port to listen on; with a static token only a loopback address")
    auth: str = _option(
        KEYSTONE, "how callers authenticate: keystone, or token for the one static token of a development machine"
    )
    redis_url: str = _option("redis://127.0.0.1:6379/0", "Redis that holds policies and assignments")
    redis_prefix: str = _option("sluice", "prefix of all keys; agents and actor hosts use the same one")
    history_redis_url: str = _option(
        "", "Redis with the history of metrics, as of the actor hosts; redis_url when empty"
    )
    history_url: str = _option(
        "", "a Prometheus that scrapes this API, to read the history of metrics from; empty: none"
    )
    token_file: str = _option("/etc/sluice/token", "auth = token: file with the admin token; mode 0600")
    keystone_file: str = _option(
        "",
        "auth = keystone: file with a section [keystone_authtoken], the options of keystonemiddleware; empty for this "
        "file; it holds a password, so others must not read it",
    )
    policy_file: str = _option("", "oslo.policy file with other rules than those of sluice-api --sample-policy")
    operator_roles: str = _option(
        OPERATOR_ROLES,
        "roles whose holders may write their project's objects in Swift: those in [filter:keystoneauth] of its proxies",
    )
    reseller_prefix: str = _option("AUTH_", "the prefix of a project's id in its account, as in Swift")
    self_service: str = _option("", "keywords, separated by commas, that members may use for their own containers")
    enable_proxy_headers_parsing: bool = _option(
        False,
        "whether to trust X-Forwarded-Proto, -Host, -Prefix and -For; the proxy in front of this API must then set all "
        "of them",
    )
    workers: int = _option(2, "processes")
    threads: int = _option(4, "threads of each process; one less can wait for a roll-out")
    log_level: str = _option("info", "debug, info, warning or error")
    log_format: str = _option(str(LOG_FORMAT.default), LOG_FORMAT.help)
    default_tenant: str = _option("", "tenant of a container that is named without one; empty refuses such names")
    body_limit: int = _option(1 << 20, "largest request body, in bytes")
    import_limit: int = _option(16 << 20, "largest document for PUT /import, in bytes")
    text_limit: int = _option(16384, "longest policy text, in characters")
    node_timeout: float = _option(15.0, "seconds without a report after which a node counts as away")
    erasure_coded: str = _option(
        "",
        "containers of erasure-coded storage policies, as account/container separated by commas; `*` for not all "
        "listed, empty for none",
    )
    swift_url: str = _option("", "a Swift proxy with `list_endpoints`, for locality and storage policies; empty: none")
    swift_dir: str = _option(
        "", "folder of Swift's rings and swift.conf, for zones and fragments of objects; empty: none"
    )
    swift_user: str = _option(
        "", "auth = token: the Swift user that creates containers; with keystone the caller creates them"
    )
    swift_key_file: str = _option("", "file with that user's key; mode 0600")
    code_auth_url: str = _shared("code_auth_url")
    code_user: str = _shared("code_user")
    code_key_file: str = _shared("code_key_file")
    code_container: str = _shared("code_container")
    code_limit: int = _option(64 << 20, "largest code of a filter, in bytes")
    cinder_auth_url: str = _shared("cinder_auth_url")
    cinder_user: str = _shared("cinder_user")
    cinder_password_file: str = _shared("cinder_password_file")
    cinder_region: str = _shared("cinder_region")
    cinder_url: str = _shared("cinder_url")
    konnector_ca_file: str = _shared("konnector_ca_file")
    volume_key_file: str = _option(
        "",
        "key file for the passphrases of encrypted volumes, created by sluice-keys, and not that of "
        "objects; empty here and in volume_key_manager_conf: no volume can be encrypted",
    )
    volume_key_manager_conf: str = _option(
        "", "castellan's configuration, for these keys from a key manager (Barbican) instead of a file"
    )
    source: str = ""

    @classmethod
    def read(cls, *paths: str | Path) -> Self:
        """Return the options of ``[api]`` in the files at ``paths``, of which later ones override earlier ones.

        :raises OptionError: when a file or an option in it is not valid
        """
        return cls(**read_files(OPTIONS, paths, SECTION), source=os.pathsep.join(map(str, paths)))

    @property
    def keystone_source(self) -> str:
        """The files with ``[keystone_authtoken]``."""
        return self.keystone_file or self.source

    @property
    def self_service_words(self) -> frozenset[str]:
        """The keywords of ``self_service``, in lower case."""
        return frozenset(filter(None, (word.strip().lower() for word in self.self_service.split(","))))

    @classmethod
    def from_environment(cls) -> Self:
        """The options of the files in the environment variable, or the defaults."""
        source = os.environ.get(CONFIG_VARIABLE)
        return cls.read(*split_source(source)) if source else cls()


def split_source(source: str) -> list[str]:
    """The paths of the files that a configuration came from."""
    return source.split(os.pathsep)


OPTIONS: Final = tuple(Option(one.name, **one.metadata) for one in fields(Config) if one.metadata)
