"""``python -m sluice_middleware.usage <node> <period> <conf> …``: the usage reader of a storage node.

The agent starts it, in Swift's interpreter and as Swift's user, and forwards its output: one frame per batch
(``sluice_core.metrics.usage_metrics``) on standard output.  It ends when its standard input ends, so that it never
outlives the agent.

A byte on its standard input requests the accounts: it answers with one frame of all accounts in its databases at that
moment (``sluice_rewrites.accounts``).

It starts to read before the end of each window, as early as the last pass took, and writes when the window has
ended; so values are fresh, and all nodes report the same moment.
"""

from __future__ import annotations

import configparser
import contextlib
import heapq
import logging
import os
import select
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import BinaryIO, Final

from sluice_core.messages.nodes import MetricBatch
from sluice_core.messages.policies import CONTAINER, TENANT
from sluice_core.metrics import usage_metrics as metrics
from sluice_core.metrics.node_metrics import NODE, STORAGE_POLICY
from sluice_core.metrics.usage_metrics import ACCOUNTS, FORMAT_VARIABLE, encode_frame
from sluice_core.process.logs import TEXT, start_logging
from sluice_middleware.swift import storage_api
from sluice_middleware.usage.accounts import AccountReader
from sluice_middleware.usage.databases import DatabaseReader, Pass, Usage
from sluice_middleware.usage.space import Space, StorageConf, all_devices, measure_space, policy_devices

log = logging.getLogger("sluice.usage")

#: A lower CPU priority than every server of Swift.
_NICE: Final = 10
#: A pass starts earlier than its expected duration: by these seconds and multiple of its last duration.
_MARGIN: Final = 0.5
_SLACK: Final = 1.5
#: Tenants and containers of a node that are published, the largest: brokers take 16 MiB in one message.
MOST_ROWS: Final = 40_000

Values = Mapping[str, Mapping[str, float]]


def read_conf(path: str) -> StorageConf:
    """Read the devices that the configuration at ``path``, of an account, container or object server, names.

    :raises OSError: when it cannot be read
    """
    parser = configparser.RawConfigParser(strict=False)
    with open(path, encoding="utf-8") as file:
        parser.read_file(file)
    given = parser.defaults()
    known = StorageConf()
    return StorageConf(
        given.get("devices", known.devices),
        storage_api.config_true_value(given.get("mount_check", "true")),
        given.get("swift_dir", known.swift_dir),
        given.get("bind_ip", known.bind_ip),
    )


class UsageBatches:
    """Builds the batches of one node, with their numbers.

    :param period: seconds of a window
    """

    def __init__(self, node: str, period: int) -> None:
        self._node = node
        self._period = period
        self._numbers: Counter[str] = Counter()

    def stored(self, window: int, found: Pass) -> Iterator[MetricBatch]:
        """Batches of the usage of tenants and containers."""
        levels = {TENANT: _largest(found.accounts), CONTAINER: _largest(found.containers)}
        for metric, value in ((metrics.STORED, _stored), (metrics.OBJECTS, _objects)):
            values = {level: {path: value(usage) for path, usage in rows.items()} for level, rows in levels.items()}
            yield self._batch(metric, window, values)

    def space(self, window: int, node: Space, policies: Mapping[str, Space]) -> Iterator[MetricBatch]:
        """Batches of the space of this node's devices; none for a node or storage policy without devices."""
        if node.size:
            yield self._batch(metrics.NODE_CAPACITY, window, {NODE: {self._node: float(node.size)}})
            yield self._batch(metrics.NODE_FREE, window, {NODE: {self._node: node.free_share}})
        sizes = {STORAGE_POLICY: {name: float(one.size) for name, one in policies.items() if one.size}}
        if sizes[STORAGE_POLICY]:
            free = {STORAGE_POLICY: {name: policies[name].free_share for name in sizes[STORAGE_POLICY]}}
            yield self._batch(metrics.STORAGE_POLICY_CAPACITY, window, sizes)
            yield self._batch(metrics.STORAGE_POLICY_FREE, window, free, sizes)

    def _batch(self, metric: str, window: int, values: Values, weights: Values | None = None) -> MetricBatch:
        self._numbers[metric] += 1
        merge = metrics.MERGES.get(metric, "")
        return MetricBatch(
            self._node, metric, window, self._numbers[metric], values, float(self._period), weights or {}, merge
        )


def _largest(rows: Mapping[str, Usage]) -> Mapping[str, Usage]:
    if len(rows) <= MOST_ROWS:
        return rows
    return dict(heapq.nlargest(MOST_ROWS, rows.items(), key=lambda item: item[1].stored))


def _stored(usage: Usage) -> float:
    return float(usage.stored)


def _objects(usage: Usage) -> float:
    return float(usage.objects)


class UsageReader:
    """Reads and writes the values of one window after the other."""

    def __init__(self, node: str, period: int, confs: Sequence[StorageConf], out: BinaryIO) -> None:
        self._period = period
        self._confs = confs
        self._out = out
        self._databases = DatabaseReader()
        self._accounts = AccountReader()
        self._batches = UsageBatches(node, period)
        self._took = 0.0

    def next_window(self, now: float) -> tuple[float, int]:
        """When the next pass should start, and when the window ends after which its values are written."""
        margin = min(float(self._period), _MARGIN + _SLACK * self._took)
        end = (int((now + margin) // self._period) + 1) * self._period
        return end - margin, end

    def read(self) -> Pass:
        """Read all databases once."""
        begun = time.monotonic()
        rows = self._databases.read(all_devices(self._confs))
        self._took = time.monotonic() - begun
        if rows.unreadable:
            log.warning("%d databases could not be read, the last one: %s", rows.unreadable, rows.reason)
        if self._took > self._period:
            log.warning("reading all databases took %.0f s, more than the period of %d s", self._took, self._period)
        return rows

    def write(self, rows: Pass, now: float) -> None:
        """Write the batches of the window that ended last."""
        window = (int(now) // self._period - 1) * self._period
        space = measure_space(all_devices(self._confs))
        policies = {name: measure_space(devices) for name, devices in policy_devices(self._confs).items()}
        self._send(self._batches.space(window, space, policies))
        self._send(self._batches.stored(window, rows))
        self._out.flush()

    def write_accounts(self) -> None:
        """Read the accounts of this moment, and write them."""
        self._out.write(encode_frame(ACCOUNTS, self._accounts.read(self._confs).encode()))
        self._out.flush()

    def _send(self, batches: Iterable[MetricBatch]) -> None:
        for batch in batches:
            self._out.write(encode_frame(batch.metric, batch.encode()))


def main(argv: Sequence[str]) -> int:
    """Run until standard input ends."""
    start_logging("info", os.environ.get(FORMAT_VARIABLE, TEXT), "%(name)s: %(levelname)s: %(message)s")
    node, period, *paths = argv
    out = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # libraries must not print into the frames
    os.nice(_NICE)
    try:
        confs = [read_conf(path) for path in paths]
    except (OSError, configparser.Error) as error:
        log.error("option `storage_confs`: %s", error)
        return 1
    storage_api.use_swift_dir(confs[0].swift_dir)
    reader = UsageReader(node, int(period), confs, out)
    reader.read()  # the first pass may be long: no database is cached yet
    with contextlib.suppress(BrokenPipeError):  # the agent has ended
        while True:
            begin, end = reader.next_window(time.time())
            if _serve_until(begin, reader.write_accounts):
                break
            rows = reader.read()
            if _serve_until(end, reader.write_accounts):
                break
            reader.write(rows, max(end, time.time()))  # a wait may end a moment too early
    return 0


def _serve_until(until: float, answer: Callable[[], None]) -> bool:
    """Wait until a moment of the wall clock, and ``answer`` each byte; return True as soon as standard input ends."""
    while select.select([0], [], [], max(0.0, until - time.time()))[0]:
        if not os.read(0, 1):
            return True
        answer()
    return False


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
