"""Answers calls of the API, in threads of a daemon `sluice-motifs`.

One thread claims calls, as many as there are free workers.  One thread announces the daemon, answers for daemons
that were killed with claimed calls, and processes operations.  Both continue after any error of Redis.
"""

from __future__ import annotations

import logging
import threading
import uuid
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

from sluice_core.errors import DecodeError, PeerError, SluiceError
from sluice_core.process.logs import log_fields
from sluice_core.store.operation import Operation
from sluice_core.store.store import Store
from sluice_motif_control.calls import (
    PERIOD,
    MotifCalls,
    announce,
    answer_call,
    calls_in_hand,
    claim_call,
    drop_call,
    lost_daemons,
    taken_call,
    withdraw,
)
from sluice_motif_control.messages import VERBS, MotifAnswer, MotifCall, MotifDaemon, MotifTemplate
from sluice_motifs_swift.cluster.operation_worker import OperationWorker

log = logging.getLogger(__name__)

#: Seconds for which one command waits for a call.
_WAIT: Final = 2.0
#: Seconds of a pause after an error of Redis.
_PAUSE: Final = 1.0


class CallServer:
    """The calls of one daemon; :meth:`start` and :meth:`stop` it.

    :param node: on which it runs
    :param workers: concurrent calls
    :param now: unix seconds
    """

    def __init__(
        self,
        store: Store,
        calls: MotifCalls,
        node: str,
        templates: Iterable[MotifTemplate],
        now: Callable[[], float],
        workers: int = 8,
        software: str = "",
    ) -> None:
        self._store = store
        self._calls = calls
        self._now = now
        self.daemon = MotifDaemon(f"{node}/{uuid.uuid4().hex[:8]}", node, software, now(), tuple(templates))
        self._stopping = threading.Event()
        self._free = threading.BoundedSemaphore(workers)
        self._pool = ThreadPoolExecutor(workers, "motif call")
        self._operations = OperationWorker(store, calls, self.daemon.name, self._stopping, now)
        self._threads = [
            threading.Thread(target=target, name=name, daemon=True)
            for target, name in ((self._take, "motif calls"), (self._announce, "motif announcements"),
                                 (self._operations.run, "motif operations"))
        ]  # fmt: skip

    def start(self) -> None:
        """Announce the daemon, and start to answer; an unreachable Redis gets the announcement later."""
        self._try(announce(self._store.keys, self.daemon))
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """Finish the claimed calls, and claim no more."""
        self._stopping.set()
        for thread in self._threads:
            thread.join()
        self._pool.shutdown()
        self._try(withdraw(self._store.keys, self.daemon.name))

    def _take(self) -> None:
        while not self._stopping.is_set():
            if not self._free.acquire(timeout=_WAIT):
                continue
            claimed = self._try(claim_call(self._store.keys, self.daemon.name, _WAIT), _PAUSE)
            if claimed is None:
                self._free.release()
                continue
            taken, is_late = claimed
            if is_late:
                self._try(drop_call(self._store.keys, self.daemon.name, taken))
                self._free.release()
            else:
                self._pool.submit(self._serve, taken)

    def _serve(self, taken: bytes) -> None:
        try:
            call = taken_call(taken)
            with log_fields(request=call.request or call.id):
                answer = self._answer(call)
                self._try(answer_call(self._store.keys, self.daemon.name, taken, call.id, answer))
        except DecodeError as error:  # of an API that is newer; it waits in vain
            log.error("skipped a call: %s", error)
            self._try(drop_call(self._store.keys, self.daemon.name, taken))
        finally:
            self._free.release()

    def _answer(self, call: MotifCall) -> MotifAnswer:
        if call.verb not in VERBS:
            return MotifAnswer(400, reason=f"daemon `{self.daemon.name}` knows no call `{call.verb}`")
        try:
            return MotifAnswer(result=getattr(self._calls, call.verb)(**call.arguments))
        except SluiceError as error:
            return MotifAnswer(error.status, reason=str(error))
        except Exception:  # shims and templates may raise any exception, and the caller needs an answer
            log.exception("call `%s` failed", call.verb)
            return MotifAnswer(500, reason=f"call `{call.verb}` failed in daemon `{self.daemon.name}`, see its log")

    def _announce(self) -> None:
        while not self._stopping.wait(PERIOD):
            self._try(announce(self._store.keys, self.daemon))
            for name in self._try(lost_daemons(self._store.keys)) or ():
                self._answer_for(name)

    def _answer_for(self, lost: str) -> None:
        """Answer the claimed calls of a daemon that was killed."""
        reason = f"daemon `{lost}` ended while it worked at this, which may have happened; ask again"
        for taken in self._try(calls_in_hand(self._store.keys, lost)) or ():
            try:
                call_id = taken_call(taken).id
            except DecodeError:
                self._try(drop_call(self._store.keys, lost, taken))
                continue
            self._try(answer_call(self._store.keys, lost, taken, call_id, MotifAnswer(503, reason=reason)))
        if self._try(calls_in_hand(self._store.keys, lost)) == []:
            log.warning("daemon `%s` is gone", lost)
            self._try(withdraw(self._store.keys, lost))

    def _try(self, operation: Operation[Any], pause: float = 0.0) -> Any:
        """Run an operation on Redis; return None when Redis does not answer, which is logged."""
        try:
            return self._store.run(operation)
        except PeerError as error:
            log.warning("%s", error)
            self._stopping.wait(pause)
            return None
