"""Contract: what a home asks the voters of objects: look, promise and confirm, for many objects in one request.

A request with the method :data:`METHOD` and the path ``/`` to an object server has a JSON list of :data:`MOST` requests
at most, as :class:`VoteRequest`.  The response is 200 with a JSON list in the same order, as :class:`VoteAnswer`.  A
server without ``egg:openstack-sluice#object`` answers 405.

It has the form of ``object_batches``: a home of many objects confirms the reads of several in one request, and JSON
shows in a trace what was asked; the fields are short text, so that MessagePack would save two microseconds of some
hundred.

A state is stored by a PUT (``wsgi.sysmeta.HOME``), so that Swift itself writes file, hashes and row.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from sluice_core.errors import DecodeError
from sluice_objects.protocol.acceptor import Promise, Refusal
from sluice_objects.protocol.home import Sighting, Vote
from sluice_objects.protocol.stamps import Stamp
from sluice_objects.protocol.voters import Voter, Voters

METHOD: Final = "VOTE"
#: Requests at once, and their bytes in total.
MOST: Final = 64
LARGEST: Final = 1 << 20
#: Characters of a home's address.
LONGEST_HOME: Final = 255

#: What a home asks: what a voter knows, a promise of a ballot, whether the home with a stamp still has the object.
LOOK: Final = "look"
PROMISE: Final = "promise"
CONFIRM: Final = "confirm"


class VoteRequest(NamedTuple):
    """
    :param stamp: the ballot to promise, or the home's stamp to confirm; None for a look
    :param home: address of the home that asks for a promise
    """

    ask: str
    device: str
    partition: int
    policy: int
    account: str
    container: str
    name: str
    stamp: Stamp | None = None
    home: str = ""


class VoteAnswer(NamedTuple):
    """
    :param status: 200; 409 for a refused promise; others for what is no vote: 400 (the policy has no voters), 503 (a
        file of the voter is damaged, or a device hangs), 507 (no such device, or it is full)
    :param stored: the stamp of the newest file (look, promise)
    :param deleted: it is a tombstone: a GET answers 404 with this stamp as X-Backend-Timestamp
    :param voters: those that the state names (look)
    :param promised: (look), or the ballot that must be exceeded (409)
    :param home: that has the promise
    :param daemon: address of the node's ``sluice-objectd`` (look)
    :param agreed: the voter can vote (promise), or confirms
    :param reason: why it is no vote
    """

    status: int
    incarnation: str = ""
    stored: Stamp | None = None
    deleted: bool = False
    voters: Voters = ()
    promised: Stamp | None = None
    home: str = ""
    daemon: str = ""
    agreed: bool = False
    reason: str = ""

    def sighting(self, device: str) -> Sighting:
        """The answer to a look at ``device``, as the protocol names it."""
        return Sighting(Voter(device, self.incarnation), self.stored, self.voters, self.promised, self.home)

    def vote(self, device: str, ask: str) -> Vote:
        """The answer of ``device`` to a promise or confirm."""
        voter = Voter(device, self.incarnation)
        if ask == CONFIRM:
            return Vote(voter, self.agreed)
        if self.promised is not None:
            return Vote(voter, Refusal(self.promised, self.home))
        return Vote(voter, Promise(self.stored, self.agreed))


_DEFAULTS: Final = VoteAnswer(200)


def encode_requests(requests: Sequence[VoteRequest]) -> bytes:
    """The body of a request."""
    return json.dumps([[*one[:7], one.stamp and one.stamp.internal, one.home] for one in requests]).encode()


def decode_requests(body: bytes) -> list[VoteRequest]:
    """
    :raises DecodeError: for a body that :func:`encode_requests` does not write, or beyond the limits
    """
    requests = [_request(one) for one in _list(body)]
    if not 0 < len(requests) <= MOST:
        raise DecodeError(f"{len(requests)} requests to voters, expected 1 to {MOST}", body)
    return requests


def encode_answers(answers: Sequence[VoteAnswer]) -> bytes:
    """The body of a response: objects without the fields that have their defaults."""
    return json.dumps([_without_defaults(one) for one in answers]).encode()


def decode_answers(body: bytes, expected: int) -> list[VoteAnswer]:
    """
    :raises DecodeError: for a body that :func:`encode_answers` does not write for this many
    """
    answers = [_answer(one) for one in _list(body)]
    if len(answers) != expected:
        raise DecodeError(f"{len(answers)} answers to {expected} requests to voters", body)
    return answers


def encode_voters(voters: Voters) -> str:
    """The value of ``wsgi.sysmeta.VOTERS``."""
    return json.dumps(voters, separators=(",", ":"))


def decode_voters(value: str) -> Voters:
    """
    :raises DecodeError: for a value that :func:`encode_voters` does not write
    """
    voters = tuple(map(_voter, _list(value.encode())))
    if not voters:
        raise DecodeError("a state names no voters", value.encode())
    return voters


def is_address(home: str) -> bool:
    """Whether ``home`` can be the address of a home in a header."""
    return home.isascii() and home.isprintable() and len(home) <= LONGEST_HOME


def _request(data: Any) -> VoteRequest:
    match data:
        case [
            str(ask),
            str(device),
            int(partition),
            int(policy),
            str(account),
            str(container),
            str(name),
            stamp,
            str(home),
        ]:
            named = "/" not in device and device not in ("", ".", "..") and account and container and name
            wanted = stamp is None if ask == LOOK else isinstance(stamp, str) and ask in (PROMISE, CONFIRM)
            if named and wanted and is_address(home):
                ballot = stamp and Stamp.read(stamp)
                return VoteRequest(ask, device, partition, policy, account, container, name, ballot, home)
    raise DecodeError("a request to a voter is none", json.dumps(data).encode())


def _answer(data: Any) -> VoteAnswer:
    try:
        for name in ("stored", "promised"):
            if name in data:
                data[name] = Stamp.read(data[name])
        if "voters" in data:
            data["voters"] = tuple(map(_voter, data["voters"]))
        return VoteAnswer(**data)
    except TypeError as error:
        raise DecodeError(f"an answer of a voter is none: {error}", repr(data).encode()) from error


def _without_defaults(answer: VoteAnswer) -> dict[str, Any]:
    fields = answer._asdict()
    return {
        name: value.internal if isinstance(value, Stamp) else value
        for name, value in fields.items()
        if name == "status" or value != getattr(_DEFAULTS, name)
    }


def _voter(data: Any) -> Voter:
    match data:
        case [str(device), str(incarnation)]:
            return Voter(device, incarnation)
    raise DecodeError("a voter is no pair of device and incarnation", json.dumps(data).encode())


def _list(body: bytes) -> list[Any]:
    try:
        items = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise DecodeError(f"what homes and voters say is not JSON: {error}", body) from error
    if not isinstance(items, list):
        raise DecodeError("what homes and voters say is no list", body)
    return items
