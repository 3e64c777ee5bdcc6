"""One worker of Swift's object server on a port, for :mod:`benchmarks.bandwidth.io_streams`; a process of its own.

    python -m benchmarks.bandwidth.io_server FOLDER PORT MODULE MODE KEEP LEVELS

``FOLDER`` has the devices, ``MODULE`` is ``swift`` or ``sluice`` (whose disk files), ``MODE`` what
``sluice_io_threads`` is (``objective`` while one is in force, ``resting`` while none is; ``forced`` is ``always``, and
bytes in the page cache pass through threads too), ``KEEP`` whether read bytes stay in the page cache (``keep`` or
``drop``), ``LEVELS`` a JSON object: account → level of its I/O.
"""

from __future__ import annotations

import json
import logging
import sys
import tempfile
from pathlib import Path

from swift.common import concurrency
from swift.common.utils import eventlet_monkey_patch
from tests.support.middleware.object_server import Log, swift_conf

from sluice_core.messages.bandwidth import NO_CLASS, Flow
from sluice_middleware.object_server import page_cache
from sluice_middleware.object_server.controller import ObjectController
from sluice_middleware.swift.diskfile_api import POLICIES


class Levels:
    """An agent state that never changes."""

    def __init__(self, levels: dict[str, int], active: bool) -> None:
        self._levels = levels
        self._active = active

    def __call__(self) -> Levels:
        return self

    @property
    def active(self) -> bool:
        """The value of the command line."""
        return self._active

    def level(self, flow: Flow) -> int:
        """The level of the account."""
        return self._levels.get(flow.account, NO_CLASS)


def main(folder: str, port: str, module: str, mode: str, keep: str, levels: str) -> None:
    """Serve for ever."""
    eventlet_monkey_patch()
    logging.disable(logging.CRITICAL)
    conf = {
        "devices": folder,
        "mount_check": "false",
        "fallocate_reserve": "0",
        "swift_dir": "/none",
        "sluice_agent_socket": "",
        "sluice_io_threads": {"resting": "objective", "forced": "always"}.get(mode, mode),
        "keep_cache_size": str(1 << 40 if keep == "keep" else 0),
        "log_requests": "false",
    }
    with tempfile.TemporaryDirectory() as etc, swift_conf(Path(etc), module):
        server = ObjectController(conf, Log())
        if module == "sluice":
            server._diskfile_router[POLICIES[0]].scheduler.agent_state = Levels(json.loads(levels), mode != "resting")
        if mode == "forced":
            page_cache.is_cached = lambda *_: False
        listening = concurrency.listen(("127.0.0.1", int(port)), backlog=128)
        concurrency.wsgi.server(listening, server, log_output=False)


if __name__ == "__main__":
    main(*sys.argv[1:])
