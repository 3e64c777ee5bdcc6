"""Checks whether Keystone is reachable, for ``/health``, which needs no token and may be called often.

One thread at a time asks Keystone, at most once in :data:`REMEMBERED` seconds; other requests get the previous
answer.  Any answer except a server error counts.  No credentials are sent.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from functools import lru_cache
from typing import Final

log = logging.getLogger(__name__)

#: Seconds for which an answer is valid, and the time-out of a request.
REMEMBERED: Final = 5.0
PATIENCE: Final = 2.0


class KeystoneProbe:
    """Keeps the result of ``ask`` for a while."""

    def __init__(self, ask: Callable[[], bool], clock: Callable[[], float] = time.monotonic) -> None:
        self._ask = ask
        self._clock = clock
        self._lock = threading.Lock()
        self._until = float("-inf")
        self._good = False
        self._known = threading.Event()

    def is_up(self) -> bool:
        """The last result; waits only before the first one."""
        if self._clock() >= self._until and self._lock.acquire(blocking=False):
            try:
                self._good = self._ask()
                self._until = self._clock() + REMEMBERED
                self._known.set()
            finally:
                self._lock.release()
        self._known.wait(2 * PATIENCE)
        return self._good


@lru_cache(maxsize=8)
def probe_for(source: str) -> KeystoneProbe:
    """The probe of the Keystone in the files of ``source``, as in PATH; connects at the first check."""
    return KeystoneProbe(lambda: reachable(source))


def reachable(source: str) -> bool:
    """Whether the Keystone of ``[keystone_authtoken]`` in the files answers, in a new connection."""
    from keystoneauth1 import exceptions
    from oslo_config import cfg

    from sluice_controller.identity.keystone import auth_url, open_session, read_conf

    try:
        conf = read_conf(source)
        session = open_session(conf, PATIENCE)
        answer = session.get(auth_url(conf), authenticated=False, raise_exc=False, redirect=False, log=False)
        with answer:
            return bool(answer.status_code < 500)
    except (exceptions.ClientException, cfg.Error, OSError) as error:
        log.warning("health: keystone: %s", type(error).__name__)
        return False
