"""Membership of the team by tooz, in a thread of its own.

Theory of operation

* tooz blocks, so none of its calls run on the event loop.  The thread sends heartbeats, reads the members, and reports
  them to the loop; the loop never waits for it.
* A member whose heartbeat is older than the time-out has left for all others.  A heartbeat each quarter of that: three
  may be late before the member counts as gone.
* If Redis is unreachable, or slower than a heartbeat, the loop is told at once that no members are known, and the
  members again when the connection is back.  The thread never ends by itself.
* A process that was suspended for longer than the time-out has been removed meanwhile; it notices that it is not among
  the members and joins again.  Writes that it made in between are refused by the fence, not here.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
import time
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any, Final

import redis
import redis.exceptions

from sluice_core.store.redis_urls import RedisAddress

# tooz tries to import eventlet through a library of its own, and eventlet, where it is installed, warns about its age
# at each import.  So tooz is imported here alone.
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from tooz import ToozError
    from tooz.coordination import GroupAlreadyExist, MemberAlreadyExist
    from tooz.drivers.redis import RedisDriver
    from tooz.hashring import HashRing

__all__ = ["GroupAlreadyExist", "HashRing", "MemberAlreadyExist", "RedisDriver", "ToozError"]


log = logging.getLogger(__name__)

GROUP: Final = b"actors"
BEATS: Final = 4
_LONGEST_PAUSE: Final = 1.0
_FAULTS: Final = (ToozError, redis.exceptions.RedisError, OSError)

MembersCallback = Callable[[tuple[str, ...]], None]


class _Driver(RedisDriver):
    """tooz' driver with Sluice's connection to Redis: the same URLs, TLS and Sentinels as everywhere else."""

    def __init__(self, url: str, member: str, namespace: str, timeout: float) -> None:
        super().__init__(member.encode(), None, {"membership_timeout": [timeout], "namespace": [namespace]})
        self._place = RedisAddress(url)
        self._patience = max(1.0, timeout / 2)
        self._made: redis.Redis | None = None

    def _make_client(self, *_: Any) -> redis.Redis:  # type: ignore[override]
        self._made = self._place.client(self._patience)
        return self._made

    def hang_up(self) -> None:
        """Close the connections that ``stop`` leaves open, those to Sentinels too."""
        if self._made is not None:
            self._place.close(self._made)


class Members:
    """Joins the team of ``namespace`` as ``member``, and reports its members.

    :param beat: seconds between two heartbeats; a member that misses :data:`BEATS` of them has left
    :param on_members: called on the loop after each poll, with all members, sorted; empty if they are not known
    """

    def __init__(self, url: str, member: str, namespace: str, beat: float, on_members: MembersCallback) -> None:
        self._make = partial(_Driver, url, member, namespace, beat * BEATS)
        self._member = member
        self._beat = beat
        self._on_members = on_members
        self._known: tuple[str, ...] | None = None
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._beaten = 0.0

    def start(self) -> None:
        """Begin, on the running loop."""
        self._loop = asyncio.get_running_loop()
        self._thread = threading.Thread(target=self._run, name="members", daemon=True)
        self._thread.start()

    async def close(self) -> None:
        """Leave the team."""
        self._ended.set()
        if self._thread is not None:
            await asyncio.to_thread(self._thread.join)

    @property
    def silence(self) -> float:
        """Seconds since the last successful heartbeat."""
        return time.monotonic() - self._beaten

    @property
    def fresh(self) -> bool:
        """False when the other hosts may count this one as gone."""
        return self.silence < self._beat * BEATS

    def _run(self) -> None:
        pause = self._beat
        while not self._ended.is_set():
            try:
                self._stay()
                pause = self._beat
            except _FAULTS as error:
                if self._known != ():
                    log.warning("not in the team of actor hosts: %s", error or type(error).__name__)
                else:
                    pause = min(pause * 1.5, _LONGEST_PAUSE)
                self._report(())
            self._ended.wait(pause)

    def _stay(self) -> None:
        """Stay a member until the end, or until the connection fails."""
        driver: Any = self._make()
        try:
            driver.start()
            self._join(driver)
            while True:
                began = time.monotonic()
                driver.heartbeat()
                self._beaten = began
                found = sorted(name.decode() for name in driver.get_members(GROUP).get())
                if self._member in found:
                    self._report(tuple(found))
                else:
                    log.warning("the other actor hosts counted `%s` as gone, joining again", self._member)
                    self._report(())
                    self._join(driver)
                    continue
                if self._ended.wait(self._beat):
                    return
        finally:
            self._leave(driver)

    def _join(self, driver: Any) -> None:
        with contextlib.suppress(GroupAlreadyExist):
            driver.create_group(GROUP).get()
        try:
            driver.join_group(GROUP).get()
        except MemberAlreadyExist:
            log.info("`%s` was a member a moment ago", self._member)

    @staticmethod
    def _leave(driver: Any) -> None:
        try:
            driver.stop()
        except _FAULTS as error:
            log.debug("left the team without a word: %s", error)
        finally:
            driver.hang_up()

    def _report(self, members: tuple[str, ...]) -> None:
        assert self._loop is not None
        self._known = members
        try:
            self._loop.call_soon_threadsafe(self._call_back, members)
        except RuntimeError:  # the loop is closed, so nothing waits for the members
            self._ended.set()

    def _call_back(self, members: tuple[str, ...]) -> None:
        if not self._ended.is_set():
            self._on_members(members)
