"""A storage node in a folder, for tests: Swift's own object server over Sluice's disk files, and parts of daemons."""

from __future__ import annotations

import json
import logging
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from sluice_filters.api import Filter
from sluice_middleware.object_server.controller import ObjectController
from sluice_middleware.object_server.diskfile.stored_metadata import ENTRY, StoredMetadata
from sluice_middleware.swift.diskfile_api import POLICIES, Request, read_metadata, storage_policies, utils
from sluice_middleware.wsgi import sysmeta

REPLICATED: Final = 0
CODED: Final = 1
_SWIFT_CONF: Final = """\
[swift-hash]
swift_hash_path_suffix = tests
[storage-policy:0]
name = replicated
default = yes
diskfile_module = egg:{module}#replication.fs
[storage-policy:1]
name = coded
policy_type = erasure_coding
ec_type = liberasurecode_rs_vand
ec_num_data_fragments = 2
ec_num_parity_fragments = 1
ec_object_segment_size = 65536
diskfile_module = egg:{module}#erasure_coding.fs
"""


@contextmanager
def swift_conf(folder: Path, module: str = "openstack-sluice") -> Iterator[None]:
    """Storage policies 0 (replicated) and 1 (2+1) with the disk files of ``module``, then those from before."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "swift.conf").write_text(_SWIFT_CONF.format(module=module))
    before = utils.SWIFT_CONF_FILE, utils.HASH_PATH_PREFIX, utils.HASH_PATH_SUFFIX
    utils.SWIFT_CONF_FILE = str(folder / "swift.conf")
    utils.HASH_PATH_PREFIX, utils.HASH_PATH_SUFFIX = b"", b"tests"
    storage_policies.reload_storage_policies()
    try:
        yield
    finally:
        utils.SWIFT_CONF_FILE, utils.HASH_PATH_PREFIX, utils.HASH_PATH_SUFFIX = before
        storage_policies.reload_storage_policies()


def intent(*steps: tuple[str, Mapping[str, Any]] | str, version: int = 1) -> dict[str, str]:
    """The header by which a proxy requests ``steps``: keywords, with parameters where they matter."""
    pairs = [(step, {}) if isinstance(step, str) else step for step in steps]
    return {sysmeta.NODE: json.dumps([{"f": word, "v": version, "p": dict(params)} for word, params in pairs])}


class Log(logging.LoggerAdapter[logging.Logger]):
    """A logger as Swift's servers and daemons need it, without a socket to syslog; ``counts`` are its counters."""

    thread_locals = ("", "")
    txn_id = client_ip = server = ""

    def __init__(self, name: str = "object-server") -> None:
        super().__init__(logging.getLogger(name))
        self.counts: Counter[str] = Counter()

    def increment(self, metric: str, **labels: Any) -> None:
        """Count one."""
        self.counts[metric] += 1

    def _unheard(self, *args: Any, **labels: Any) -> None:
        """Ignore amounts and durations."""

    update_stats = timing = timing_since = transfer_rate = _unheard

    def set_statsd_prefix(self, prefix: str) -> None:
        """Do nothing: there is no statsd."""


@dataclass
class Answer:
    """A response of the object server."""

    status: str
    headers: Mapping[str, str]
    body: bytes


@dataclass
class StorageNode:
    """One object server and its devices ``sda`` and ``sdb`` in ``folder``; made within :func:`swift_conf`."""

    folder: Path
    options: Mapping[str, str] = field(default_factory=dict)
    filters: Sequence[type[Filter]] = ()
    clock: float = field(default_factory=lambda: time.time() - 1000)

    def __post_init__(self) -> None:
        for device in ("sda", "sdb"):
            (self.folder / device).mkdir(parents=True, exist_ok=True)
        self.log = Log()
        self.server = ObjectController(self.conf, self.log)
        for policy in POLICIES:
            self.teach(self.server._diskfile_router[policy])

    @property
    def conf(self) -> dict[str, str]:
        """The configuration of every server and daemon of this node."""
        general = {"devices": str(self.folder), "mount_check": "false", "fallocate_reserve": "0"}
        return {**general, "sluice_agent_socket": "", "swift_dir": "/none", **self.options}

    def teach(self, manager: Any) -> None:
        """Install :attr:`filters` beside the installed ones."""
        manager.disk_filters.filters.update({one.info.keyword: one for one in self.filters})

    def manager(self, policy: int = REPLICATED) -> Any:
        """The server's manager of a policy."""
        return self.server._diskfile_router[POLICIES[policy]]

    def request(
        self,
        method: str,
        name: str = "a/c/o",
        body: bytes = b"",
        headers: Mapping[str, str] | None = None,
        device: str = "sda",
        policy: int = REPLICATED,
    ) -> Answer:
        """One request of a proxy; each is a second later than the one before."""
        self.clock += 1
        general = {
            "X-Timestamp": f"{self.clock:.5f}",
            "X-Backend-Storage-Policy-Index": str(policy),
            "Content-Type": "text/plain",
        }
        if method == "PUT":
            general["Content-Length"] = str(len(body))
        request = Request.blank(f"/{device}/0/{name}", method=method, body=body, headers={**general, **(headers or {})})
        response = request.get_response(self.server)
        return Answer(response.status, response.headers, response.body)

    def put(self, body: bytes, *steps: tuple[str, Mapping[str, Any]] | str, **kwargs: Any) -> Answer:
        """A PUT with a requested transform."""
        headers = {**(intent(*steps) if steps else {}), **kwargs.pop("headers", {})}
        return self.request("PUT", body=body, headers=headers, **kwargs)

    def get(self, byte_range: str = "", **kwargs: Any) -> Answer:
        """A GET, maybe of a ``byte_range`` like ``0-99``."""
        headers = {**({"Range": f"bytes={byte_range}"} if byte_range else {}), **kwargs.pop("headers", {})}
        return self.request("GET", headers=headers, **kwargs)

    def files(self, suffix: str = ".data") -> list[Path]:
        """The current files of all objects."""
        return sorted(one for one in self.folder.glob(f"*/objects*/*/*/*/*{suffix}"))

    def quarantined(self) -> list[Path]:
        """The folders of quarantined objects."""
        return sorted(self.folder.glob("*/quarantined/objects*/*"))

    @staticmethod
    def stored(path: Path) -> StoredMetadata | None:
        """The private metadata of a file; None for a stock one."""
        value = read_metadata(str(path)).get(ENTRY)
        return None if value is None else StoredMetadata.decode(value)
