"""Answers a batch of HEADs or contractions (``sluice_middleware.swift.object_batches``) from the disk files.

Each is answered as Swift's object server answers a HEAD, or a PUT of no bytes at the named timestamp: an object that is
as new or newer stays.  It costs no request, no response, no line in the log, and no row of a container.

Contractions are background work.  A thread pauses after each for as long as it took, since requests of clients
took longer beside batches without pauses (``docs/reference/benchmarks/motif-costs.md``).
"""

from __future__ import annotations

import os
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from functools import partial
from hashlib import md5
from typing import Any, Final

from sluice_core.messages.bandwidth import REPLICATION_FLOW
from sluice_middleware.log import Logger
from sluice_middleware.object_server.diskfile.disk_filters import Refused
from sluice_middleware.object_server.diskfile.request_context import RequestContext, request_scope
from sluice_middleware.object_server.voter.lock import Busy
from sluice_middleware.swift import diskfile_api as swift
from sluice_middleware.swift import green
from sluice_middleware.swift.object_batches import ObjectAnswer, ObjectRequest

#: Devices on which a batch contracts at a time, with a thread each: switching between threads takes more CPU than
#: contractions do, and clients' uploads share the thread pool.
_DEVICES: Final = 4
#: Seconds after which no contraction is started: the caller holds leases that expire.
BEGINS: Final = 3.0
#: The longest pause in seconds, so that a batch on slow disks ends within :data:`BEGINS`, too.
_LONGEST_PAUSE: Final = 0.005
_NO_BYTES: Final = md5(b"", usedforsecurity=False).hexdigest()
#: The context of requests that belong to no tenant.
_INTERNAL: Final = RequestContext(None, REPLICATION_FLOW)


class ObjectBatches:
    """
    :param find: as ``ObjectController.get_diskfile``
    :param headers: names, in lower case, of headers that are kept with an object beside its metadata
    """

    def __init__(self, find: Callable[..., Any], headers: frozenset[str], logger: Logger) -> None:
        self._find = find
        self._headers = headers
        self._logger = logger
        self._clock = time.monotonic
        self._pause = time.sleep

    def answer(self, requests: Sequence[ObjectRequest]) -> list[ObjectAnswer]:
        """The answers in the order of the requests."""
        answers: dict[int, ObjectAnswer] = {}
        by_device: dict[str, list[int]] = defaultdict(list)
        for number, request in enumerate(requests):
            if request.stored is None:
                answers[number] = self._answer(request)
                green.yield_control()  # to clients
            else:
                by_device[request.device].append(number)

        until = self._clock() + BEGINS

        def contract(numbers: Sequence[int]) -> None:
            for number in numbers:
                began = self._clock()
                if began >= until:
                    answers[number] = ObjectAnswer(503)
                else:
                    answers[number] = self._answer(requests[number])
                    self._pause(min(self._clock() - began, _LONGEST_PAUSE))

        green.map_concurrently(partial(green.run_in_thread, contract), by_device.values(), _DEVICES)
        return [answers[number] for number in range(len(requests))]

    def _answer(self, request: ObjectRequest) -> ObjectAnswer:
        try:
            policy = swift.POLICIES.get_by_index(request.policy)
            place = (request.device, str(request.partition), request.account, request.container, request.name)
            with request_scope(_INTERNAL):
                file = self._find(*place, policy=policy)
                return self._look(file) if request.stored is None else self._contract(file, request.stored)
        except Refused:
            return ObjectAnswer(409)  # the object has a home
        except Busy:
            return ObjectAnswer(503)
        except (swift.DiskFileDeviceUnavailable, swift.DiskFileXattrNotSupported, swift.DiskFileNoSpace):
            return ObjectAnswer(507)
        except Exception:
            self._logger.exception("sluice: one of a batch: %s", "/".join(map(str, request[:6])))
            return ObjectAnswer(500)

    def _look(self, file: Any) -> ObjectAnswer:
        try:
            metadata = file.read_metadata()
        except (swift.DiskFileNotExist, swift.DiskFileQuarantined):
            return ObjectAnswer(404)
        except swift.DiskFileStateChanged:
            return ObjectAnswer(503)
        headers = [(name, value) for name, value in metadata.items() if self._is_kept(name)]
        headers += [
            ("Content-Type", metadata.get("Content-Type", "application/octet-stream")),
            ("Content-Length", metadata["Content-Length"]),
            ("Etag", f'"{metadata["ETag"]}"'),
            ("X-Backend-Timestamp", swift.Timestamp(metadata["X-Timestamp"]).internal),
            ("X-Backend-Data-Timestamp", file.data_timestamp.internal),
        ]
        return ObjectAnswer(200, headers)

    def _contract(self, file: Any, stored: Any) -> ObjectAnswer:
        timestamp = swift.Timestamp(stored["x-timestamp"])
        if self._written(file) >= timestamp:
            return ObjectAnswer(409)
        metadata = {name.title(): value for name, value in stored.items() if self._is_kept(name)}
        metadata |= {
            "X-Timestamp": timestamp.internal,
            "Content-Type": stored["content-type"],
            "Content-Length": "0",
            "ETag": _NO_BYTES,
        }
        writer = file.writer(size=0)
        try:
            writer.open()
            writer.chunks_finished()
            writer.put(metadata)
            writer.commit(timestamp)
        finally:
            writer.close()
        return ObjectAnswer(201)

    def _written(self, file: Any) -> Any:
        """The time of the last write or deletion of the data, from the names of the object's files."""
        try:
            names = os.listdir(file._datadir)
        except FileNotFoundError:
            return swift.Timestamp.zero()
        found = file.manager.get_ondisk_files(names, file._datadir, policy=file.policy)
        newest = found.get("data_info") or found.get("ts_info")
        return newest["timestamp"] if newest else swift.Timestamp.zero()

    def _is_kept(self, name: str) -> bool:
        return (
            name.lower() in self._headers
            or swift.is_sys_or_user_meta("object", name)
            or swift.is_object_transient_sysmeta(name)
        )
