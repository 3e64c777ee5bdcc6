"""Options, plugins and snapshot of a worker, shared by its middlewares."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from sluice_core.options import Option
from sluice_core.snapshot.reader import SnapshotReader
from sluice_filters.api import Filter, HostServices
from sluice_filters.encryption.keys.options import open_keys
from sluice_filters.registry import load_filters
from sluice_filters.visits import ObjectCache
from sluice_middleware.log import Logger
from sluice_middleware.swift import green
from sluice_middleware.wsgi.policy_lookup import PolicyLookup
from sluice_sandbox import hosting

OPTIONS: Final = (
    Option("snapshot_dir", "/var/lib/sluice/snapshot", "folder of the agent's snapshot of policies"),
    Option("agent_socket", "/run/sluice/agent.sock", "unix socket that the node's agent listens on"),
    Option("key_file", "", "file of root secrets, for filters that need keys"),
    Option("key_manager_conf", "", "castellan's configuration, for keys from a key manager instead of a file"),
    *hosting.OPTIONS,
)
_LOG_OPTIONS: Final = ("log_name", "log_level", "log_facility", "log_address")
#: Keys that paste adds to every section, and the logging options that Swift allows in any, plain or with `set`.
PASTE_OPTIONS: Final = (
    *("__file__", "__name__", "here", "use"),
    *_LOG_OPTIONS,
    *(f"set {name}" for name in _LOG_OPTIONS),
)


class WorkerContext:
    """Filters, snapshot and look-up of one worker; its first request (after the fork) calls ``start``."""

    def __init__(self, options: Mapping[str, Any], logger: Logger, cache: ObjectCache | None = None) -> None:
        """
        :param options: the values of ``OPTIONS``
        :param cache: passed to the filter ``caching``
        """
        self.logger = logger
        #: Entry point's name → why the plugin was left out.
        self.failures: dict[str, str] = {}
        lent = HostServices(keys=open_keys(options), cache=cache)
        self._installed = hosting.InstalledFilters(
            load_filters(self.failures, lent), options, logger, surroundings=lent
        )
        self.filters = self._installed.filters
        #: Called when ``filters`` has changed.
        self.filters_changed: Callable[[], None] = lambda: None
        self.reader = SnapshotReader(options["snapshot_dir"])
        self.lookup = PolicyLookup(self.reader, self.filters)
        self.started = False
        self._problem: str | None = None

    def uploaded_filter(self, keyword: str, sha256: str) -> type[Filter] | None:
        """As ``InstalledFilters.revision``: motifs name a revision."""
        return self._installed.revision(keyword, sha256)

    def start(self) -> None:
        """Open the snapshot and check for a new one each second; processes do not share it."""
        if not self.started:
            self.started = True
            self.refresh()
            green.each_second(self.refresh)

    def refresh(self) -> None:
        """Use the newest snapshot and the filters that it registers; a problem is logged once."""
        self.reader.refresh()
        if self._installed.update(self.reader.uploads):
            self.lookup.rebuild()
            self.filters_changed()
        if self.reader.problem != self._problem:
            self._problem = self.reader.problem
            if self._problem:
                self.logger.warning("sluice: no policies: %s", self._problem)
            else:
                self.logger.info("sluice: policies from snapshot `%s`", self.reader.snapshot_id)
