"""Stops a cluster from its records, whoever started it; one command at a time."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections.abc import Iterator
from typing import Final

from sluice_aio.base.layout import Layout
from sluice_aio.base.processes import end_all
from sluice_aio.cinder import backends, konnector
from sluice_aio.cluster.components import WAVES
from sluice_aio.cluster.records import Records

#: Seconds that a service gets to end after SIGTERM.
STOP_LIMIT: Final = 15.0


def stop_recorded(layout: Layout) -> list[str]:
    """Stop the cluster in the layout's folder, whoever started it; the names of what still ran."""
    records = Records(layout.run)
    with locked(records), uninterrupted():
        stopped = stop_all(records)
        konnector.release(layout)
        backends.release(layout)
        return stopped


def stop_all(records: Records) -> list[str]:
    """Stop all recorded services, wave by wave; the names of those that still ran."""
    known = records.load()
    running = [name for name, record in known.items() if record.alive()]
    for wave in reversed(WAVES):
        members = [known[name] for name in wave if name in known]
        end_all([record.processes[0] for record in members], STOP_LIMIT)
        end_all([helper for record in members for helper in record.processes[1:]], STOP_LIMIT)
    if known:
        records.save(())
    return running


@contextlib.contextmanager
def locked(records: Records) -> Iterator[None]:
    """One command at a time in one folder."""
    descriptor = records.lock()
    try:
        yield
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def uninterrupted() -> Iterator[None]:
    """Signals to end wait until this is over: a second Ctrl-C must not leave half a cluster."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM, signal.SIGHUP})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
