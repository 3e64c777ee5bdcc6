"""Processes expansions of all items, one operation at a time and some items of it concurrently."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import ExitStack
from dataclasses import replace
from typing import Final

from sluice_core.errors import NotFound, PeerError, SluiceError
from sluice_core.process.logs import log_fields, with_log_fields
from sluice_core.store.store import Store
from sluice_motif_control.calls import MotifCalls
from sluice_motif_control.messages import DONE, RUNNING, MotifOperation
from sluice_motif_control.operations import claim_operation, report_operation

log = logging.getLogger(__name__)

#: Items that are expanded concurrently.
AT_ONCE: Final = 4
#: Seconds between two tries to claim an operation.
_POLL: Final = 2.0
#: Seconds between two reports.
_PERIOD: Final = 1.0
_MOST_EXAMPLES: Final = 20


class OperationWorker:
    """The operations of one daemon.

    :param stopping: ends :meth:`run` soon after it is set
    :param now: unix seconds
    """

    def __init__(
        self,
        store: Store,
        calls: MotifCalls,
        daemon: str,
        stopping: threading.Event,
        now: Callable[[], float],
    ) -> None:
        self._store = store
        self._calls = calls
        self._daemon = daemon
        self._stopping = stopping
        self._now = now

    def run(self) -> None:
        """Process operations until stopped."""
        while not self._stopping.wait(_POLL):
            with ExitStack() as working:  # what it fails by is logged with its id
                try:
                    claimed = self._store.run(claim_operation(self._store.keys, self._daemon))
                    if claimed is not None:
                        working.enter_context(log_fields(operation=claimed.id))
                        self._work(replace(claimed, expanded=0, failed=0, bytes=0, examples=()))
                except PeerError as error:
                    log.warning("operations: %s", error)
                except Exception:  # whatever the storage raises, the next one is tried, or this one again
                    log.exception("an operation failed")

    def _work(self, operation: MotifOperation) -> None:
        names = sorted(self._calls.contracted(scope_prefix(operation)))
        operation = replace(
            operation,
            state=RUNNING,
            started=operation.started or self._now(),
            daemon=self._daemon,
            remaining=len(names),
        )
        with ThreadPoolExecutor(AT_ONCE, "motif expansion") as pool:
            for made in self._progress(operation, iter(names), pool):
                operation = made
                if not self._store.run(report_operation(self._store.keys, operation, self._daemon)):
                    log.info("operation `%s` was cancelled", operation.id)
                    return
        if not self._stopping.is_set():
            ended = replace(operation, state=DONE, ended=self._now(), remaining=0)
            self._store.run(report_operation(self._store.keys, ended, self._daemon, ended=True))

    def _progress(
        self, operation: MotifOperation, names: Iterator[tuple[str, int]], pool: ThreadPoolExecutor
    ) -> Iterator[MotifOperation]:
        """Yield the progress of the operation every few seconds until all items are done."""
        yield operation
        under_way: dict[Future[object], tuple[str, int]] = {}
        expand = with_log_fields(self._calls.expand)
        due = self._now() + _PERIOD
        while not self._stopping.is_set():
            while len(under_way) < AT_ONCE and (item := next(names, None)) is not None:
                under_way[pool.submit(expand, item[0])] = item
            if not under_way:
                break
            done, _ = wait(under_way, _PERIOD, FIRST_COMPLETED)
            for future in done:
                operation = _counted(operation, *under_way.pop(future), future)
            if self._now() >= due or not done:
                due = self._now() + _PERIOD
                yield operation
        for future, item in under_way.items():  # stopped: another daemon starts the operation again
            operation = _counted(operation, *item, future)
        yield operation


def scope_prefix(operation: MotifOperation) -> str:
    """The prefix of the names of an operation's items."""
    return "".join(f"{part}/" for part in (operation.account, operation.container) if part)


def _counted(operation: MotifOperation, name: str, size: int, future: Future[object]) -> MotifOperation:
    left = max(operation.remaining - 1, 0)
    try:
        future.result()
    except NotFound:  # deleted meanwhile
        return replace(operation, remaining=left)
    except SluiceError as error:
        examples = (*operation.examples, (name, str(error)))[-_MOST_EXAMPLES:]
        return replace(operation, remaining=left, failed=operation.failed + 1, examples=examples)
    return replace(operation, remaining=left, expanded=operation.expanded + 1, bytes=operation.bytes + size)
