"""Options, filters and keys of the disk files of one process.

Every daemon builds its own managers from its own section of object-server.conf, so Sluice's options stand in
``[DEFAULT]`` there, with the prefix ``sluice_``.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from functools import cached_property, lru_cache
from typing import Any, Final

from sluice_core.errors import SluiceError
from sluice_core.options import Option, read_options
from sluice_core.process.logs import quote_our_records
from sluice_core.snapshot.reader import SnapshotReader
from sluice_filters.api import CorruptData, Filter, Hint, HostServices
from sluice_filters.chain import ChainEncoder, missing
from sluice_filters.encryption.keys.options import open_keys
from sluice_filters.registry import load_filters
from sluice_middleware.log import Logger
from sluice_middleware.object_server import stream_scheduler
from sluice_middleware.object_server.diskfile.request_context import RequestedTransform, TransformStep, parse_steps
from sluice_middleware.object_server.diskfile.stored_metadata import VERSION, StoredMetadata
from sluice_middleware.swift.diskfile_api import ReplicationException
from sluice_sandbox import hosting

PREFIX: Final = "sluice_"
OPTIONS: Final = (
    Option(
        "sluice_agent_socket",
        "/run/sluice/agent.sock",
        "unix socket of the node's agent, which reports when all daemons of the node run Sluice's disk files; "
        "empty when no report is needed",
    ),
    Option("sluice_key_file", "", "file with the root keys of encryption, readable by Swift's user only"),
    Option("sluice_key_manager_conf", "", "oslo.config file of castellan, instead of a key file"),
    Option(
        "sluice_objectd",
        "",
        "host and port of this node's sluice-objectd, for proxies that look for the home of an object",
    ),
    Option("sluice_snapshot_dir", "", "folder of the agent's snapshot, which registers uploaded filters; empty: none"),
    *stream_scheduler.OPTIONS,
    *(Option(PREFIX + one.name, one.default, one.help) for one in hosting.OPTIONS),
)
#: Intents whose filters are kept; further ones belong to former policies.
_MOST_PIPELINES: Final = 1000
#: Seconds between two searches for a missing filter.
_LOOK_AGAIN: Final = 1.0


class Refused(SluiceError):
    """This node refuses an object: it cannot apply the transform that the proxy requests."""

    status = 503


class Unreadable(ReplicationException):  # type: ignore[misc]
    """An undamaged file whose content cannot be decoded here: a filter or a key is missing.

    It is no ``DiskFileError``: SSYNC's sender skips those and then counts the skipped file as sent.  A
    ``ReplicationException`` ends the sender's session in order, without any deletion.
    """


class DiskFilters:
    """The filters of this process, and their encoders."""

    def __init__(self, conf: Mapping[str, Any], logger: Logger) -> None:
        """
        :param conf: of the object server or a daemon; only Sluice's options are read
        :raises OptionError: for unknown options and bad values, all at once
        :raises CallerError: when they name both a key file and a key manager
        """
        given = {name: str(value) for name, value in conf.items() if name.startswith(PREFIX)}
        self.options = read_options(OPTIONS, given, "object-server.conf [DEFAULT]")
        self._keys = open_keys(self.options, PREFIX)
        self._logger = logger
        #: Entry point's name → why the plugin was left out; known after the first use of :attr:`filters`.
        self.failures: dict[str, str] = {}
        quote_our_records()
        self._pipeline = lru_cache(_MOST_PIPELINES)(self._make_pipeline)
        folder = self.options["sluice_snapshot_dir"]
        self._snapshot = SnapshotReader(folder) if folder else None
        self._looked = 0.0

    @cached_property
    def _installed(self) -> hosting.InstalledFilters:
        lent = HostServices(keys=self._keys)
        filters = load_filters(self.failures, lent)
        for name, reason in self.failures.items():
            self._logger.error("sluice: plugin `%s` is left out: %s", name, reason)
        return hosting.InstalledFilters(filters, self.options, self._logger, PREFIX, lent)

    @property
    def filters(self) -> dict[str, type[Filter]]:
        """Keyword → filter, with the keys of this process; always the same dictionary."""
        return self._installed.filters

    def refresh(self) -> bool:
        """Load the filters that the newest snapshot registers; return True when they have changed."""
        self._looked = time.monotonic()
        if self._snapshot is None:
            return False
        self._snapshot.refresh()
        changed = self._installed.update(self._snapshot.uploads)
        if changed:
            self._pipeline.cache_clear()
        return changed

    def _look_for(self, wanted: Iterable[tuple[str, int]]) -> None:
        """Refresh when one of these is missing or older than ``wanted``: a forked process has no timer."""
        lacking = any(self._version(keyword) < version for keyword, version in wanted)
        if lacking and time.monotonic() - self._looked > _LOOK_AGAIN:
            self.refresh()

    def _version(self, keyword: str) -> int:
        known = self.filters.get(keyword)
        return 0 if known is None else known.info.version

    def encoder(self, intent: RequestedTransform, hint: Hint) -> ChainEncoder | None:
        """Return the encoder for the transform ``intent``; None when it leaves this object as it is.

        :raises Refused: when the transform cannot be applied here; says why
        """
        try:
            steps = self._pipeline(intent.value)
            return ChainEncoder(chosen, hint) if (chosen := [one for one in steps if one.applies(hint)]) else None
        except Refused:
            raise
        except SluiceError as error:
            raise Refused(str(error)) from error

    def unreadable_reason(self, stored: StoredMetadata) -> str:
        """Return why a file cannot be decoded here; empty when it can be, damaged or not."""
        if stored.version > VERSION:
            return f"written by disk files of version {stored.version}, these are of version {VERSION}"
        try:
            self._look_for(map(_wanted, stored.records))
            faults = missing(stored.records, self.filters)
            for record in stored.records if not faults else ():
                known = self.filters[record["f"]]
                if known.team is None:  # the check must not start a sandbox
                    known().decoder(record["r"])
        except CorruptData:
            return ""  # reading reports the damage
        except SluiceError as error:
            return str(error)
        return "; ".join(faults)

    def is_heavy(self, stored: StoredMetadata) -> bool:
        """Whether decoding some 100 KB takes longer than a thread switch."""
        return any(self.filters[keyword].heavy for keyword in stored.filters() if keyword in self.filters)

    def _make_pipeline(self, value: str) -> list[Filter]:
        steps = parse_steps(value)
        self._look_for((step.keyword, step.version) for step in steps)
        return [self._filter(step) for step in steps]

    def _filter(self, step: TransformStep) -> Filter:
        known = self.filters.get(step.keyword)
        if known is None:
            raise Refused(f"filter `{step.keyword}` is not installed")
        info = known.info
        if not (info.reversible and info.on_put):
            raise Refused(f"filter `{step.keyword}` as installed is not reversible")
        if step.version > info.version and not hasattr(known, "upload"):  # nodes may differ in revisions for a while
            raise Refused(f"filter `{step.keyword}` of version {step.version} is wanted, installed is {info.version}")
        return known(step.params)


def _wanted(record: Mapping[str, Any]) -> tuple[str, int]:
    """Keyword and version of the filters that decode a record, which may be damaged."""
    version = record.get("v")
    return str(record.get("f")), version if isinstance(version, int) else 1
