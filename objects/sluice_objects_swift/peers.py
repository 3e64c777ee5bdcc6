"""The devices of one object, over HTTP to their object servers.

A request to each device runs in a green thread of its own.  When the home has read enough answers the others go on:
a state still reaches the devices that are slow.  A device that does not answer in time, or whose server is not
``egg:openstack-sluice#object``, is left out.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final, TypeVar
from urllib.parse import quote

from sluice_core.errors import DecodeError, PeerError
from sluice_middleware.swift import internal_api as swift
from sluice_middleware.swift import object_votes
from sluice_middleware.wsgi import sysmeta
from sluice_objects.api import LARGEST_STATE
from sluice_objects.protocol.acceptor import Refusal
from sluice_objects.protocol.home import Sighting, Vote
from sluice_objects.protocol.stamps import UNITS, Stamp
from sluice_objects.protocol.voters import Voter, Voters
from sluice_objects.state.codec import decode, encode
from sluice_objects.state.records import DELETED, PLAIN, TYPED, ContentState, ObjectState
from sluice_objects.writes import etag_of
from sluice_objects_swift.http import Reply, Timeouts, send
from sluice_objects_swift.place import Place
from sluice_objects_swift.rings import Rings, device_name
from sluice_objects_swift.rows import Rows

log = logging.getLogger(__name__)
T = TypeVar("T")

#: Seconds, the default of Swift's object servers; a longer one is safe, too.
RECLAIM_AGE: Final = 604_800
#: Seconds until a device is left out.
TIMEOUTS: Final = Timeouts(0.5, 4.0)
_OVERRIDE: Final = "X-Object-Sysmeta-Container-Update-Override-"


class SwiftPeers:
    """The contract ``sluice_objects.protocol.home.Peers``."""

    def __init__(
        self,
        place: Place,
        rings: Rings,
        address: str,
        rows: Rows,
    ) -> None:
        self._place = place
        self._rings = rings
        self._address = address
        self._rows = rows

    def rings(self) -> Sequence[Sequence[str]]:
        """The primaries by the present ring, and by earlier ones."""
        return [[device_name(node) for node in ring] for ring in self._rings.primaries(*self._place[1:])]

    def look(self, devices: Sequence[str]) -> Iterable[Sighting]:
        """Ask what devices know."""

        def ask(device: str) -> Sighting | None:
            answer = self._ask(device, object_votes.LOOK)
            return answer and answer.sighting(device)

        return _each(ask, devices)

    def promise(self, devices: Sequence[str], ballot: Stamp, home: str) -> Iterable[Vote]:
        """Ask for a promise."""
        return self._votes(object_votes.PROMISE, devices, ballot, home)

    def confirm(self, devices: Sequence[str], stamp: Stamp) -> Iterable[Vote]:
        """Ask whether the home with ``stamp`` still has the object."""
        return self._votes(object_votes.CONFIRM, devices, stamp, "")

    def fetch(self, device: str, stamp: Stamp) -> tuple[ObjectState, Voters] | None:
        """The state with ``stamp``, and its voters; None when the device has another one by now, or does not answer."""
        headers = {"X-Backend-Open-Expired": "true"}
        reply = self._request(device, "GET", self._object_path(device), headers)
        if reply is None or reply.headers.get("x-backend-timestamp") != stamp.internal:
            return None
        if reply.status == 404:
            return ObjectState(DELETED, ContentState(), version=stamp.version), ()
        if reply.status != 200:
            return None
        named = reply.headers.get(sysmeta.VOTERS.lower())
        try:
            if named is None:
                return _plain_state(reply, stamp), ()
            return decode(reply.body), object_votes.decode_voters(named)
        except DecodeError as error:
            log.error("the state of `%s` on %s cannot be read: %s", self._place.path, device, error)
            return None

    def store(self, devices: Sequence[str], stamp: Stamp, voters: Voters, state: ObjectState) -> Iterable[Vote]:
        """Store a state; a deleted one is a tombstone."""
        headers = {"X-Timestamp": stamp.internal, sysmeta.HOME: self._address}
        method, body = "DELETE", b""
        if state.kind != DELETED:
            method, body = "PUT", encode(state)
            headers |= _state_headers(state, voters, body)

        rows = dict(zip(devices, self._rows.headers(state, len(devices)), strict=True))

        def ask(device: str) -> Vote | None:
            reply = self._request(device, method, self._object_path(device), {**headers, **rows[device]}, body)
            return reply and _stored_vote(device, stamp, reply)

        return _each(ask, devices)

    def least_stamp(self, state: ObjectState) -> Stamp:
        """Versions of states are those of stamps at most, so that they go on after a deletion.

        A tombstone is removed when it is older than ``reclaim_age``, and an older state of another device would come
        back: voters refuse one that is older than half of that.
        """
        created = int((time.time() - RECLAIM_AGE / 4) * UNITS) if state.kind == DELETED else 0
        return Stamp(created, 0, state.version)

    def wanted_voters(self) -> list[Voter]:
        """The voters that the present ring wants; empty while one of its devices does not answer.

        A device that is away for a while stays a voter: only a ring without it says that it does not come back.
        """
        (present, *_) = self.rings()
        voters = {seen.voter.device: seen.voter for seen in self.look(present)}
        return [voters[device] for device in present] if len(voters) == len(present) else []

    def _votes(self, ask: str, devices: Sequence[str], stamp: Stamp, home: str) -> Iterable[Vote]:
        def vote(device: str) -> Vote | None:
            answer = self._ask(device, ask, stamp, home)
            return answer and answer.vote(device, ask)

        return _each(vote, devices)

    def _ask(self, device: str, ask: str, stamp: Stamp | None = None, home: str = "") -> object_votes.VoteAnswer | None:
        """The vote of a device; None when it has none."""
        place = self._place
        path = (device.rpartition("/")[2], self._partition(), *place)
        request = object_votes.VoteRequest(ask, *path, stamp, home)
        body = object_votes.encode_requests([request])
        reply = self._request(device, object_votes.METHOD, "/", {}, body)
        if reply is None or reply.status != 200:
            return None
        try:
            (answer,) = object_votes.decode_answers(reply.body, 1)
        except DecodeError as error:
            log.warning("the vote of %s about `%s` cannot be read: %s", device, place.path, error)
            return None
        if answer.reason:
            log.warning("%s has no vote about `%s`: %s", device, place.path, answer.reason)
        return answer if answer.incarnation else None

    def _partition(self) -> int:
        return self._rings.partition(*self._place[1:])

    def _object_path(self, device: str) -> str:
        name = device.rpartition("/")[2]
        return quote(f"/{name}/{self._partition()}/{self._place.path}")

    def _request(
        self, device: str, method: str, path: str, headers: Mapping[str, str], body: bytes = b""
    ) -> Reply | None:
        """The response of a device's server; None when there is none in time."""
        address = device.rpartition("/")[0]
        sent = {"X-Backend-Storage-Policy-Index": str(self._place.policy), "User-Agent": "sluice-objectd", **headers}
        try:
            return send(address, method, path, sent, body, TIMEOUTS)
        except PeerError as error:
            log.warning("no answer about `%s`: %s", self._place.path, error)
            return None


def _each(ask: Callable[[str], T | None], devices: Sequence[str]) -> Iterator[T]:
    """Answers as they arrive, without those that are None."""
    pile = swift.GreenAsyncPile(len(devices))
    for device in devices:
        pile.spawn(ask, device)
    return (answer for answer in pile if answer is not None)


def _stored_vote(device: str, stamp: Stamp, reply: Reply) -> Vote | None:
    voter = Voter(device, reply.headers.get(sysmeta.INCARNATION.lower(), ""))
    promised = reply.headers.get(sysmeta.PROMISED.lower())
    if promised is not None:
        return Vote(voter, Refusal(Stamp.read(promised), reply.headers.get(sysmeta.HOME.lower(), "")))
    if voter.incarnation and reply.headers.get(sysmeta.STATE_STORED.lower()) == stamp.internal:
        return Vote(voter, True)
    return None


def _state_headers(state: ObjectState, voters: Voters, body: bytes) -> dict[str, str]:
    """What a proxy server sends with a PUT, and what the listing shows: size and ETag of the byte stream."""
    return {
        "Content-Type": state.content_type or "application/octet-stream",
        "Etag": etag_of(body),
        sysmeta.VOTERS: object_votes.encode_voters(voters),
        sysmeta.CLASS: f"{TYPED}/{state.class_name}" if state.kind == TYPED else PLAIN,
        f"{_OVERRIDE}Size": str(len(state.content.stream)),
        f"{_OVERRIDE}Etag": state.etag,
    }


def _plain_state(reply: Reply, stamp: Stamp) -> ObjectState:
    """The state of an object that a proxy server stored before its container had homes.

    :raises DecodeError: when it is larger than a state may be
    """
    if len(reply.body) > LARGEST_STATE:
        raise DecodeError(f"it has more than {LARGEST_STATE} bytes", b"")
    metadata = {name: value for name, value in reply.headers.items() if name.startswith("x-object-meta-")}
    seconds = stamp.created / 100_000
    return ObjectState(
        PLAIN,
        ContentState(reply.body),
        version=1,
        etag=reply.headers.get("etag", "").strip('"'),
        modified=seconds,
        clock=seconds,
        content_type=reply.headers.get("content-type", ""),
        metadata=metadata,
    )
