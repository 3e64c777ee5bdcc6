"""Answers the homes of objects (``sluice_middleware.swift.object_votes``): an object server as a voter.

Looks and confirmations only read, and take no lock: a promise that is written meanwhile counts as a later one.  A
promise is one step under the lock of the object, in a thread, since it waits for the disk twice.

A state is stored by Swift's own PUT (or DELETE).  The voter decides before the body is read, to spare it, and again
under the lock when the file is committed (``diskfile.commit``).  The lock is not held while the body arrives, nor
while rows of containers are written.
"""

from __future__ import annotations

import errno
import time
from collections.abc import Callable, Sequence
from typing import Any, Final

from sluice_core.errors import CallerError, DecodeError, SluiceError
from sluice_middleware.log import Logger
from sluice_middleware.object_server.diskfile.commit import BallotRefused, CommitMixin
from sluice_middleware.object_server.diskfile.request_context import StateWrite, request_scope, requested_context
from sluice_middleware.object_server.voter.device_files import DeviceFiles
from sluice_middleware.swift import diskfile_api as swift
from sluice_middleware.swift import green
from sluice_middleware.swift.object_votes import (
    CONFIRM,
    LOOK,
    VoteAnswer,
    VoteRequest,
    decode_voters,
    is_address,
)
from sluice_middleware.wsgi import sysmeta
from sluice_objects.protocol.acceptor import Acceptor, Refusal
from sluice_objects.protocol.stamps import UNITS, Stamp
from sluice_objects.protocol.voters import Voters

#: Requests of one batch that are answered at a time: each may wait for a lock or a disk.
_AT_ONCE: Final = 8
_FULL: Final = (errno.ENOSPC, errno.EDQUOT)
_UNAVAILABLE: Final = (swift.DiskFileDeviceUnavailable, swift.DiskFileXattrNotSupported, swift.DiskFileNoSpace)
_NO_VOTE: Final = (SluiceError, OSError, swift.DiskFileError)
#: A state has none of these: a tombstone of the expirer would be newer than all states.
_EXPIRY: Final = ("HTTP_X_DELETE_AT", "HTTP_X_DELETE_AFTER")


class ObjectVotes:
    """
    :param find: as ``ObjectController.get_diskfile``
    :param daemon: address of this node's ``sluice-objectd``; empty without one
    """

    def __init__(self, find: Callable[..., Any], logger: Logger, daemon: str = "") -> None:
        self._find = find
        self._daemon = daemon
        self._logger = logger

    def answer(self, requests: Sequence[VoteRequest]) -> list[VoteAnswer]:
        """The answers in the order of the requests."""
        return green.map_concurrently(self._answer, requests, _AT_ONCE)

    def store(self, request: Any, method: Callable[[Any], Any]) -> Any:
        """Respond to the PUT or DELETE of a home.

        :param method: Swift's
        """
        try:
            place = swift.get_obj_name_and_placement(request)
            stamp = _check_state(request.environ)
            file = self._voting_file(*place)
            if request.method == "DELETE":
                _check_tombstone(stamp, file.manager.reclaim_age)
            files = DeviceFiles(file)
            incarnation = files.incarnation()
        except (CallerError, DecodeError) as error:
            return swift.HTTPBadRequest(request=request, body=f"{error}\n", content_type="text/plain")
        except _NO_VOTE as error:
            return self._no_vote(request, error)
        try:
            response = self._store(request, method, files, stamp)
        except _NO_VOTE as error:
            response = self._no_vote(request, error)
        response.headers[sysmeta.INCARNATION] = incarnation
        return response

    # -- looks, promises, confirmations ---------------------------------------------------------

    def _answer(self, request: VoteRequest) -> VoteAnswer:
        try:
            policy = swift.POLICIES.get_by_index(request.policy)
            place = (request.device, str(request.partition), request.account, request.container, request.name)
            file = self._voting_file(*place, policy)
            files = DeviceFiles(file)
            incarnation = files.incarnation()
            if request.ask == LOOK:
                return self._look(file, files)._replace(incarnation=incarnation)
            assert request.stamp is not None
            if request.ask == CONFIRM:
                return VoteAnswer(200, incarnation, agreed=Acceptor(files).confirms(request.stamp))
            return self._promise(files, request.stamp, request.home)._replace(incarnation=incarnation)
        except CallerError as error:
            return VoteAnswer(400, reason=str(error))
        except _NO_VOTE as error:
            self._logger.error("sluice: no vote about %s: %s", "/".join(map(str, request[1:7])), error)
            return VoteAnswer(_status(error), reason=str(error) or "the device is not available, or full")

    def _look(self, file: Any, files: DeviceFiles) -> VoteAnswer:
        record, voters = files.record(), _voters(file)
        newest = files.newest()
        known = VoteAnswer(200, voters=voters, promised=record.promised, home=record.home, daemon=self._daemon)
        return known if newest is None else known._replace(stored=newest.stamp, deleted=newest.deleted)

    def _promise(self, files: DeviceFiles, ballot: Stamp, home: str) -> VoteAnswer:
        with files.lock():
            answer = green.run_in_thread(Acceptor(files).promise, ballot, home)
            newest = files.newest()
        if isinstance(answer, Refusal):
            return VoteAnswer(409, promised=answer.promised, home=answer.home)
        deleted = newest is not None and newest.deleted and newest.stamp == answer.stored
        return VoteAnswer(200, stored=answer.stored, deleted=deleted, agreed=answer.can_vote)

    # -- states ---------------------------------------------------------------------------------

    def _store(self, request: Any, method: Callable[[Any], Any], files: DeviceFiles, stamp: Stamp) -> Any:
        refusal = Acceptor(files).refusal(stamp)
        if refusal is not None:
            return _refused(request, BallotRefused(refusal))
        state = StateWrite(stamp)
        try:
            with request_scope(requested_context(request.environ)._replace(state=state)):
                response = method(request)
        except BallotRefused as error:
            return _refused(request, error)
        except swift.HTTPException as error:
            response = error
        stored = state.stored
        if not stored and response.status_int in (404, 409):  # as new or newer files are there
            answer = self._accept_stored(files, stamp)
            if isinstance(answer, Refusal):
                return _refused(request, BallotRefused(answer))
            if answer:
                stored, response = True, swift.HTTPCreated(request=request)
        if stored:
            response.headers[sysmeta.STATE_STORED] = stamp.internal
        return response

    def _accept_stored(self, files: DeviceFiles, stamp: Stamp) -> Refusal | bool:
        """Acknowledge the state when it is stored: it was sent again, or a replicator was faster."""
        acceptor = Acceptor(files)
        with files.lock():
            refusal = acceptor.refusal(stamp)
            if refusal is not None:
                return refusal
            if files.stored() != stamp:
                return False
            green.run_in_thread(acceptor.accepted, stamp)
            return True

    # -- both -----------------------------------------------------------------------------------

    def _voting_file(self, device: str, partition: str, account: str, container: str, name: str, policy: Any) -> Any:
        """
        :raises CallerError: when objects of the policy have no voters
        """
        if policy is None or policy.policy_type != swift.REPL_POLICY:
            kind = "unknown" if policy is None else f"`{policy.name}`, which is not replicated"
            raise CallerError(f"the storage policy is {kind}: its objects have no states")
        file = self._find(device, partition, account, container, name, policy=policy)
        if not issubclass(getattr(file, "plain_writer_cls", object), CommitMixin):
            raise CallerError(f"the disk files of storage policy `{policy.name}` are not those of Sluice")
        return file

    def _no_vote(self, request: Any, error: Exception) -> Any:
        self._logger.error("sluice: no vote in %s %s: %s", request.method, request.path, error)
        if _status(error) == 507:
            return swift.HTTPInsufficientStorage(drive=request.path.split("/")[1], request=request)
        return swift.HTTPServiceUnavailable(request=request, body=f"{error}\n", content_type="text/plain")


def _check_state(env: dict[str, Any]) -> Stamp:
    """The stamp of the state in a home's request.

    :raises CallerError: for a request that no home makes
    :raises DecodeError: for headers that none writes
    """
    stamp = Stamp.read(env.get("HTTP_X_TIMESTAMP", ""))
    if stamp.ballot < 1:
        raise CallerError(f"the state has no ballot: `{stamp.internal}`")
    if not is_address(env[sysmeta.HOME_ENV]):
        raise CallerError(f"`{sysmeta.HOME}` is no address")
    if any(name in env for name in _EXPIRY):
        raise CallerError("a state does not expire: its home deletes it")
    if env["REQUEST_METHOD"] == "PUT":
        decode_voters(env.get(sysmeta.VOTERS_ENV, ""))
    return stamp


def _check_tombstone(stamp: Stamp, reclaim_age: float) -> None:
    """
    :raises CallerError: for a deletion at the time of an old object: Swift would remove the tombstone at once, and an
        older state of another device would come back
    """
    oldest = Stamp(int((time.time() - reclaim_age / 2) * UNITS), 0, 0)
    if stamp < oldest:
        raise CallerError(f"a deletion at `{stamp.internal}` is forgotten soon, expected `{oldest.internal}` or later")


def _voters(file: Any) -> Voters:
    """The voters that the stored state names; none without a state, or where it is a plain object."""
    try:
        value = file.read_metadata().get(sysmeta.VOTERS)
    except (swift.DiskFileNotExist, swift.DiskFileQuarantined):
        return ()
    # a proxy without Sluice copies all metadata of an object to another one
    of_home = value is not None and Stamp.read(file.data_timestamp.internal).ballot > 0
    return decode_voters(value) if of_home else ()


def _status(error: Exception) -> int:
    full = isinstance(error, OSError) and error.errno in _FULL
    return 507 if full or isinstance(error, _UNAVAILABLE) else 503


def _refused(request: Any, error: BallotRefused) -> Any:
    refusal, words = error.refusal, sysmeta.reason_header(error)
    headers = {
        sysmeta.REFUSED: words,
        sysmeta.PROMISED: refusal.promised.internal,
        sysmeta.HOME: refusal.home,
    }
    response = swift.HTTPConflict(request=request, headers=headers, body=f"{words}\n", content_type="text/plain")
    response.status = sysmeta.REFUSED_STATUS
    return response
