"""The options of an actor host, section ``[actors]``."""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from sluice_code.swift_code_store import OPTIONS as CODE_OPTIONS
from sluice_core.connections.url_allowlist import BadUrl, UrlAllowlist
from sluice_core.options import Option, OptionError, read_files, retired_option
from sluice_core.process.logs import LOG_FORMAT
from sluice_volumes.cinder.service import OPTIONS as CINDER_OPTIONS

SECTION: Final = "actors"

OPTIONS: Final = (
    Option("host", "", "id of this actor host, unique in its team; host name and process id when empty"),
    Option("redis_url", "redis://127.0.0.1:6379/0", "URL of the store"),
    Option("redis_prefix", "sluice", "prefix of all keys of this cluster"),
    Option("coordination_url", "", "the Redis for the membership of actor hosts; redis_url when empty"),
    Option("heartbeat_ms", 500, "milliseconds between heartbeats; other hosts take over after four missing ones"),
    Option("amqp_url", "amqp://guest:guest@127.0.0.1:5672/%2F", "the broker that delivers metrics"),
    Option("cinder_amqp_url", "", "the broker that Cinder notifies, for events about volumes; empty: none"),
    Option("cinder_exchange", "openstack", "the exchange of its notifications, Cinder's control_exchange"),
    Option("cinder_exchange_durable", False, "whether Cinder declares that exchange durable, as with quorum queues"),
    Option("transient_windows", 2, "false windows in a row after which a TRANSIENT action is taken back"),
    *map(retired_option, ("close_delay_ms", "divide_delay_ms", "commit_size")),
    Option("history_redis_url", "", "the Redis for the history of metrics; redis_url when empty"),
    Option("history_megabytes", 200, "memory of that Redis for the history of metrics; 0 to keep none"),
    Option("node_timeout", 15.0, "seconds without a report after which an event says that a node is away"),
    Option(
        "activation_hosts",
        "",
        "hosts that may be called when an action is set: names, `*.name`, addresses and networks, separated by commas",
    ),
    *CODE_OPTIONS,
    *CINDER_OPTIONS,
    Option("reseller_prefix", "AUTH_", "the prefix of a project's id in its account, as in the API"),
    Option("code_dir", "/var/lib/sluice/code", "folder for the code of global controllers"),
    Option("controller_memory_mb", 1024, "address space of a global controller's process, in MiB"),
    Option("log_level", "INFO", "DEBUG, INFO, WARNING or ERROR"),
    LOG_FORMAT,
)

_AT_LEAST: Final = {
    "transient_windows": 1,
    "history_megabytes": 0,
    "node_timeout": 1,
    "heartbeat_ms": 50,
    "controller_memory_mb": 64,
}
_LEVELS: Final = ("DEBUG", "INFO", "WARNING", "ERROR")


def checked(values: Mapping[str, Any], where: str) -> dict[str, Any]:
    """Return ``values`` with the defaults that depend on the machine.

    :raises OptionError: for a value out of its range
    """
    for name, least in _AT_LEAST.items():
        if values[name] < least:
            raise OptionError(f"{where}: option `{name}`: `{values[name]}`, expected {least} or more")
    try:
        UrlAllowlist.from_option(values["activation_hosts"])
    except BadUrl as error:
        raise OptionError(f"{where}: option `activation_hosts`: {error}") from error
    level = values["log_level"].upper()
    if level not in _LEVELS:
        raise OptionError(f"{where}: option `log_level`: `{values['log_level']}`, expected one of {', '.join(_LEVELS)}")
    return {**values, "log_level": level, "host": values["host"] or f"{socket.gethostname()}-{os.getpid()}"}


def read(*paths: str | Path) -> dict[str, Any]:
    """Return the options in the files at ``paths``, of which later ones override earlier ones.

    :raises OptionError: when an option is not valid
    """
    return checked(read_files(OPTIONS, paths, SECTION), f"{', '.join(map(str, paths))} [{SECTION}]")
