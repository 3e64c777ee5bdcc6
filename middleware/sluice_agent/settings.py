"""The agent's options, declared once."""

from __future__ import annotations

import socket
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Final, Self

from sluice_agent.capacity import OPTIONS as CAPACITY_OPTIONS
from sluice_agent.capacity import read_capacity
from sluice_code.swift_code_store import OPTIONS as CODE_OPTIONS
from sluice_code.swift_code_store import SwiftCodeStoreSettings
from sluice_core.options import Option, OptionError, retired_option
from sluice_core.process.logs import LOG_FORMAT, TEXT

SECTION: Final = "agent"

#: What to do when Redis lost changes: keep the last good state until an operator adopts, or adopt the older history.
ASK: Final = "ask"
FAILOVER: Final = "failover"

OPTIONS: Final = (
    Option("node", "", "name of this node in the cluster; empty means its host name"),
    Option("redis_url", "redis://127.0.0.1:6379/0", "where Redis is"),
    Option("redis_prefix", "sluice", "what all of this cluster's keys in Redis begin with"),
    Option("amqp_url", "amqp://guest:guest@127.0.0.1:5672/%2F", "where RabbitMQ is; empty publishes no metrics"),
    Option("socket", "/run/sluice/agent.sock", "Unix socket for the Swift workers; empty for none"),
    Option("worker_group", "", "Unix group that the socket and the readers' lock file are given to"),
    Option("worker_mode", "0660", "file mode of the socket"),
    Option("snapshot_dir", "/var/lib/sluice/snapshot", "folder of the snapshot that Swift workers read"),
    Option("batch", 500, "changes taken from Redis at once"),
    Option(
        "adopt",
        ASK,
        "when Redis lost changes, as after a failover: ask: keep the last good state until an operator adopts the "
        "history; failover: adopt it",
    ),
    Option("report_interval", 5.0, "seconds between reports of this node when nothing changes"),
    Option("collectd", False, "publish what this node's CollectD sends to the exchange, see docs/reference/metrics.md"),
    Option(
        "storage_confs",
        "",
        "configurations of Swift's servers here, separated by commas, on whose devices STORED, OBJECTS and free "
        "space are measured, see docs/reference/metrics.md; empty: not measured",
    ),
    Option("usage_period", 60, "seconds between two measurements of stored bytes"),
    retired_option("publish_delay_ms"),
    Option("busiest_objects", 1000, "objects whose metrics are published, the busiest; 0 for none"),
    Option("replace_wait", 3.0, "seconds to wait for workers to open a replaced snapshot"),
    Option("cache_dir", "", "the proxy's folder of cached objects, whose writes the agent exchanges; empty for none"),
    Option("cache_forget", 600.0, "seconds of silence after which the cache no longer waits for a node"),
    Option(
        "storage_daemons",
        "object-server, object-auditor, object-replicator, object-reconstructor",
        "what must run disk files of Sluice before objects may be transformed on this node's disks; "
        "name those that ever run here, none on a node without disks",
    ),
    Option("code_dir", "/var/lib/sluice/code", "folder for uploaded code"),
    Option(
        "swift_python",
        "",
        "Swift's Python, in which uploaded native code is tried and databases are read; empty: that of the agent",
    ),
    Option("swift_user", "", "user of that Python; needs an agent that runs as root; empty: the agent's own user"),
    Option("swift_group", "", "group of that user; empty: its own"),
    Option("sandbox_dir", "", "folder of `sluice-sandbox serve`, if hosts here use it; its state is reported"),
    Option("storlets_engine", "", "URL of the Docker engine for storlets, if hosts here use it; its state is reported"),
    Option("wasm", False, "true if hosts here run WebAssembly; the agent reports whether Swift's Python can"),
    *CODE_OPTIONS,
    *CAPACITY_OPTIONS,
    Option("log_level", "info", "debug, info, warning or error"),
    LOG_FORMAT,
)


#: Seconds after the end of each second at which its metrics are published.
PUBLISH_DELAY: Final = 0.06


@dataclass(frozen=True, slots=True)
class Settings:
    """The options' values; see :data:`OPTIONS`."""

    node: str
    redis_url: str = field(repr=False)
    snapshot_dir: str
    redis_prefix: str = "sluice"
    amqp_url: str = field(default="", repr=False)
    socket: str = ""
    worker_group: str = ""
    worker_mode: int = 0o660
    batch: int = 500
    adopt: str = ASK
    report_interval: float = 5.0
    busiest_objects: int = 1000
    collectd: bool = False
    storage_confs: tuple[str, ...] = ()
    usage_period: int = 60
    replace_wait: float = 3.0
    cache_dir: str = ""
    cache_forget: float = 600.0
    storage_daemons: tuple[str, ...] = ()
    code_dir: str = ""
    swift_python: str = ""
    swift_user: str = ""
    swift_group: str = ""
    sandbox_dir: str = ""
    storlets_engine: str = ""
    wasm: bool = False
    log_format: str = TEXT
    code_store: SwiftCodeStoreSettings | None = None
    capacity: Mapping[str, Mapping[str, float]] = field(default_factory=dict)

    @classmethod
    def from_options(cls, values: Mapping[str, Any]) -> Self:
        """Return the settings from values that ``sluice_core.options`` read.

        :raises OptionError: for a value that cannot be used
        """
        try:
            mode = int(values["worker_mode"], 8)
        except ValueError as error:
            raise OptionError(f"option `worker_mode` is `{values['worker_mode']}`, expected octal like 0660") from error
        if values["batch"] < 1:
            raise OptionError(f"option `batch` is `{values['batch']}`, expected at least 1")
        if values["adopt"] not in (ASK, FAILOVER):
            raise OptionError(f"option `adopt` is `{values['adopt']}`, expected {ASK} or {FAILOVER}")
        if values["busiest_objects"] < 0:
            raise OptionError(f"option `busiest_objects` is `{values['busiest_objects']}`, expected at least 0")
        if values["usage_period"] < 1:
            raise OptionError(f"option `usage_period` is `{values['usage_period']}`, expected at least 1")
        given = {option.name: values[option.name] for option in fields(cls) if option.name in values}
        derived = {
            "node": values["node"] or socket.gethostname(),
            "worker_mode": mode,
            "storage_confs": _words(values["storage_confs"]),
            "storage_daemons": _words(values["storage_daemons"]),
            "code_store": SwiftCodeStoreSettings.from_options(values),
            "capacity": read_capacity(values),
        }
        return cls(**(given | derived))


def _words(text: str) -> tuple[str, ...]:
    """The words between commas."""
    return tuple(word.strip() for word in text.split(",") if word.strip())
