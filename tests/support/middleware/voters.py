"""A home's requests to an object server in the process, for tests of voters."""

from __future__ import annotations

import io
import shutil
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from tests.support.middleware.object_server import REPLICATED, Answer, StorageNode

from sluice_middleware.object_server.voter.device_files import DeviceFiles
from sluice_middleware.swift.diskfile_api import POLICIES, Request
from sluice_middleware.swift.object_votes import (
    METHOD,
    PROMISE,
    VoteAnswer,
    VoteRequest,
    decode_answers,
    encode_requests,
    encode_voters,
)
from sluice_middleware.wsgi import sysmeta
from sluice_objects.protocol.acceptor import Record
from sluice_objects.protocol.stamps import Stamp
from sluice_objects.protocol.voters import Voter as Elector
from sluice_objects.protocol.voters import Voters

#: When objects of tests are created, in 10 µs: before the clocks of storage nodes.
CREATED: Final = 170_000_000_000_000


class State(NamedTuple):
    """An encoded state and the voters that it names."""

    body: bytes
    voters: Voters


STATE: Final = State(b"an encoded state", (Elector("127.0.0.1:6200/sda", "i1"), Elector("127.0.0.1:6201/sdb", "i2")))


class Voter:
    """A device of a node, as homes see it."""

    def __init__(self, node: StorageNode, device: str = "sda") -> None:
        self.node = node
        self.device = device

    def request(self, ask: str, stamp: Stamp | None = None, home: str = "", name: str = "a/c/o") -> VoteRequest:
        """A request about an object, to be sent."""
        return VoteRequest(ask, self.device, 0, REPLICATED, *name.split("/", 2), stamp=stamp, home=home)

    def send(self, *requests: VoteRequest) -> list[VoteAnswer]:
        """The answers to requests that are sent at once."""
        blank = Request.blank("/", method=METHOD, body=encode_requests(requests))
        response = blank.get_response(self.node.server)
        assert response.status_int == 200, response.body
        return decode_answers(response.body, len(requests))

    def ask(self, *args: Any, **kwargs: Any) -> VoteAnswer:
        """The answer to one :meth:`request`."""
        return self.send(self.request(*args, **kwargs))[0]

    def promise(self, ballot: Stamp, home: str = "h1", name: str = "a/c/o") -> Any:
        """The protocol's answer to a request for a promise."""
        return self.ask(PROMISE, ballot, home, name).vote(self.device, PROMISE).answer

    def create(self, name: str = "a/c/o") -> Stamp:
        """Store the first state after a promise; returns its stamp."""
        self.promise(Stamp(CREATED, 1, 0), name=name)
        stamp = Stamp(CREATED, 1, 1)
        assert self.store(stamp, name=name).headers[sysmeta.STATE_STORED] == stamp.internal
        return stamp

    def store(
        self,
        stamp: Stamp,
        body: io.BytesIO | None = None,
        headers: Mapping[str, str] | None = None,
        voters: Voters = STATE.voters,
        **place: Any,
    ) -> Answer:
        """Store a state as a home does."""
        body = io.BytesIO(STATE.body) if body is None else body
        length = len(body.getbuffer())
        return self.send_put(body, length, {**_state(stamp, voters), sysmeta.HOME: "h1", **(headers or {})}, **place)

    def replicate(self, stamp: Stamp, body: bytes = STATE.body, voters: Voters = STATE.voters) -> Answer:
        """Store a state as SSYNC does."""
        headers = {**_state(stamp, voters), "X-Backend-Replication": "True"}
        return self.send_put(io.BytesIO(body), len(body), headers)

    def delete(self, stamp: Stamp, **headers: str) -> Answer:
        """Delete as a home does."""
        return self.node.request("DELETE", headers={"X-Timestamp": stamp.internal, sysmeta.HOME: "h1", **headers})

    def send_put(
        self,
        body: io.BytesIO,
        length: int,
        headers: Mapping[str, str],
        name: str = "a/c/o",
        policy: int = REPLICATED,
    ) -> Answer:
        """A PUT whose body is read by the server, as far as it wants."""
        general = {"Content-Type": "text/plain", "X-Backend-Storage-Policy-Index": str(policy)}
        request = Request.blank(f"/{self.device}/0/{name}", method="PUT", headers={**general, **headers})
        request.environ["wsgi.input"] = body
        request.environ["CONTENT_LENGTH"] = str(length)
        response = request.get_response(self.node.server)
        return Answer(response.status, response.headers, response.body)

    def record(self, name: str = "a/c/o") -> Record:
        """The record on the disk."""
        return DeviceFiles(self.file(name)).record()

    def file(self, name: str = "a/c/o") -> Any:
        """A disk file of the object."""
        return self.node.server.get_diskfile(self.device, "0", *name.split("/", 2), policy=POLICIES[REPLICATED])

    def wipe(self) -> None:
        """Empty the device."""
        for path in (self.node.folder / self.device).iterdir():
            shutil.rmtree(path)


def damage(node: StorageNode, pattern: str) -> None:
    """Change a byte of a voter's file whose path matches ``pattern``."""
    (path,) = node.folder.glob(f"sda/sluice-objects/{pattern}")
    data = bytearray(path.read_bytes())
    data[-3] ^= 1
    path.write_bytes(data)


def _state(stamp: Stamp, voters: Voters = STATE.voters) -> dict[str, str]:
    return {
        "X-Timestamp": stamp.internal,
        sysmeta.VOTERS: encode_voters(voters),
        sysmeta.CLASS: "typed/counter",
    }
