"""From the request that crosses a threshold to the policy in force at the proxy, on a whole cluster.

A trial is a burst of PUTs into one container, begun at a random moment of the second and ended with the PUT
that is one more than the policy allows in a window.  The time runs from the moment at which the client
began that PUT, to the moment at which the assignment is in the snapshot that the proxy's workers read on each
request; a text uploaded right then must be stored compressed.  Windows are seconds of the wall clock.
"""

from __future__ import annotations

import concurrent.futures
import contextlib
import random
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from benchmarks.harness.corpus import log_corpus
from benchmarks.harness.figures import Figure, at_most
from benchmarks.harness.pairs import quantile
from benchmarks.harness.scale import Scale, say
from benchmarks.harness.trio import ACCOUNT, KEY, USER
from benchmarks.harness.works import expect, make_container

from sluice_aio.base.layout import Layout
from sluice_aio.base.swift_http import SwiftHttp
from sluice_aio.cluster.cluster import Cluster
from sluice_aio.cluster.disks import stored_sizes
from sluice_client import Client
from sluice_core.errors import PeerError
from sluice_core.messages.predicate import Facts
from sluice_core.snapshot.reader import SnapshotReader

LIMIT: Final = 1.5
THRESHOLD: Final = 3
CONTAINERS: Final = 5
_TEXT: Final = 20_000
#: No PUT begins so near to the end of a second that it could count for the next one.
_MARGIN: Final = 0.08
_PATIENCE: Final = 15.0


@dataclass(frozen=True, slots=True)
class Trial:
    """Unix times: the begin of the crossing PUT, the end of its window, and when the policy was in force."""

    crossed: float
    window_end: float
    enforced: float


def measure(scale: Scale) -> list[Figure]:
    """Rounds of bursts, in several containers at once."""
    folder = scale.folder / "reaction"
    names = [f"burst{number}" for number in range(CONTAINERS)]
    text = log_corpus(_TEXT)
    found: list[Trial | None] = []
    with contextlib.ExitStack() as stack:
        say("reaction: starting a cluster")
        cluster = stack.enter_context(Cluster(Layout.free(folder)))
        swift = SwiftHttp(cluster.proxy_url).login(USER, KEY)
        stack.callback(swift.close)
        _prepare(cluster, swift, names)
        watch = stack.enter_context(Watch(cluster.layout.snapshots, names))
        pool = stack.enter_context(concurrent.futures.ThreadPoolExecutor(CONTAINERS))
        rounds = scale.pick(30, 3)
        for number in range(rounds):
            if number % 5 == 0:
                say(f"reaction: round {number + 1} of {rounds}")
            found += pool.map(lambda name, turn=number: _trial(swift, watch, name, turn, text), names)
        _check_stored(cluster, names)
    return _figures([one for one in found if one is not None], found.count(None))


def _prepare(cluster: Cluster, swift: SwiftHttp, names: Sequence[str]) -> None:
    with Client(cluster.api_url, cluster.token) as api:
        for name in names:
            make_container(swift, name)
            expect(swift.request("PUT", f"{name}/first", b"x"), 201)  # the workers open the snapshot
            sentence = f"FOR CONTAINER {ACCOUNT}/{name} WHEN PUTS_SEC > {THRESHOLD} DO SET compression TRANSIENT"
            api.create_policy(sentence, wait=10)


def _trial(swift: SwiftHttp, watch: Watch, name: str, turn: int, text: bytes) -> Trial | None:
    """One burst; None if a PUT was so slow that its window is not certain.

    :raises PeerError: if the policy does not come into force, or is not removed
    """
    watch.until(name, False)
    time.sleep(random.uniform(0.0, 1.0))
    crossed, certain = _burst(swift, name)
    if not certain:
        return None
    enforced = watch.until(name, True)
    expect(swift.request("PUT", f"{name}/after-{turn}", text, content_type="text/plain"), 201)
    return Trial(crossed, int(crossed) + 1.0, enforced)


def _burst(swift: SwiftHttp, name: str) -> tuple[float, bool]:
    """PUTs until a window has one too many; the begin of that one, and whether all windows are certain."""
    window, count = 0, 0
    while True:
        now = time.time()
        if now % 1.0 > 1.0 - _MARGIN:
            time.sleep(1.001 - now % 1.0)
            continue
        if int(now) != window:
            window, count = int(now), 0
        expect(swift.request("PUT", f"{name}/burst-{count}", b"x" * 100), 201)
        count += 1
        if int(time.time()) != window:
            return now, False
        if count > THRESHOLD:
            return now, True


def _check_stored(cluster: Cluster, names: Sequence[str]) -> None:
    """Objects that were uploaded when the snapshot had the assignment must be stored compressed."""
    for name in names:
        for item, sizes in stored_sizes(cluster.device_folders, f"{ACCOUNT}/{name}").items():
            if item.startswith("after-") and max(sizes) >= _TEXT:
                raise PeerError(f"`{name}/{item}` was uploaded under the policy and is stored plain")


def _figures(trials: Sequence[Trial], uncertain: int) -> list[Figure]:
    if not trials:
        raise PeerError("no trial has a certain window")
    times = [one.enforced - one.crossed for one in trials]
    after = [one.enforced - one.window_end for one in trials]
    beside = (
        f"{len(times)} trials, p50 {quantile(times, 0.5):.2f}, worst {max(times):.2f} s; after the window's end"
        f" p50 {quantile(after, 0.5):.2f}, worst {max(after):.2f} s; {uncertain} with a slow PUT left out"
    )
    what = "request that crosses the threshold to enforced at the proxy, windows of 1 s: p99"
    return [at_most("reaction", what, quantile(times, 0.99), LIMIT, "s", beside, digits=2, times=times, after=after)]


class Watch:
    """Reads the node's snapshot every two milliseconds, as the proxy's workers do on each request."""

    def __init__(self, folder: Path, names: Sequence[str]) -> None:
        self._reader = SnapshotReader(folder)
        self._states = dict.fromkeys(names, False)
        self._since = dict.fromkeys(names, 0.0)
        self._changed = threading.Condition()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> Watch:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()
        self._reader.close()

    def until(self, name: str, state: bool) -> float:
        """Wait until the policy on ``name`` is in force (or not); return that time.

        :raises PeerError: if that takes too long
        """
        with self._changed:
            if not self._changed.wait_for(lambda: self._states[name] is state, _PATIENCE):
                word = "in force" if state else "taken back"
                raise PeerError(f"the policy on `{name}` is not {word} after {_PATIENCE:g} s")
            return self._since[name]

    def _run(self) -> None:
        refreshed = 0.0
        while not self._stop.wait(0.002):
            now = time.time()
            if now - refreshed > 1.0:
                self._reader.refresh()
                refreshed = now
            for name, before in self._states.items():
                state = bool(self._reader.find(ACCOUNT, name, "any").resolve(Facts("PUT")))
                if state is not before:
                    self._note(name, state, time.time())

    def _note(self, name: str, state: bool, now: float) -> None:
        with self._changed:
            self._states[name] = state
            self._since[name] = now
            self._changed.notify_all()
