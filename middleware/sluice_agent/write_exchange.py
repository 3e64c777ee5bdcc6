"""Agents notify each other of writes, so that no cache serves an object that was replaced more than a second ago.

Theory of operation:

* Workers write into the node's journal (:mod:`sluice_core.cache.write_journal`).  Every 20 ms the agent publishes new
    records, and applies the records of other agents to the marks (:mod:`sluice_core.cache.write_marks`) of its own
    node.
* The messages of one run of an agent (its *life*) are numbered.  After a gap, or in a new life, writes may have been
  missed: the marks get a new epoch, and every cached copy is compared with the disks before it is used again.
* Four times a second each agent sends a *heartbeat*: a message that names the heartbeats that it has received from
  the other agents, and their age.  So each agent knows, by its own clock alone, the earliest moment at which a received
  heartbeat was sent: after its own heartbeat that is named there.  Everything that the sender published before has
  been received by then, since a broker keeps the order of one channel.  The marks are trusted until a second after the
  earliest of these moments.  An agent is its own peer, too, which shows that the broker is reachable.
* If the broker is unreachable or slow, a peer is silent, or the agent on this node has ended, that moment passes, and
  the workers of the node check each hit with the disks until messages flow again.
* Peers are kept in a file, so that an agent that starts waits for silent peers.  After ``forget`` seconds of
  silence a peer is removed.
"""

from __future__ import annotations

import json
import logging
import math
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Final, Self

from sluice_agent.metrics.publisher import Bus
from sluice_core.cache.write_journal import Record, WriteJournalReader
from sluice_core.cache.write_marks import BEGUN, DIGEST_SIZE, ENDED, WriteMarks
from sluice_core.connections.exchanges import writes_routing_key
from sluice_core.errors import DecodeError
from sluice_core.messages.base import Message

log = logging.getLogger(__name__)

#: Seconds for which marks are trusted after the oldest complete report of a peer.
TRUST_SECONDS: Final = 1.0
HEARTBEAT_SECONDS: Final = 0.25
_MAX_RECORDS: Final = 4000
#: Own heartbeats whose moment of sending is kept.
_MAX_SENT: Final = 64
_STAMP_SIZE: Final = 8
_RECORD_SIZE: Final = DIGEST_SIZE + _STAMP_SIZE


@dataclass(frozen=True, slots=True)
class WriteNotice(Message):
    """The message by which agents notify each other of writes, and in a heartbeat of the heartbeats received.

    ``life`` identifies a run of the agent, ``number`` counts its messages from 1.  ``records`` are pairs of digest and
    stamp, 24 bytes each.  ``missed``: the agent may have missed writes of its own node.  ``heard``, in a heartbeat,
    maps the life of each agent to the number of its last heartbeat and the seconds since.
    """

    node: str
    life: str
    number: int
    records: bytes = b""
    missed: bool = False
    heard: Mapping[str, tuple[int, float]] | None = None

    binary: ClassVar[bool] = True

    def __iter__(self) -> Iterator[tuple[bytes, int]]:
        """The records: digest and stamp."""
        for start in range(0, len(self.records), _RECORD_SIZE):
            end = start + DIGEST_SIZE
            yield self.records[start:end], int.from_bytes(self.records[end : end + _STAMP_SIZE], "little")

    @classmethod
    def from_data(cls, data: Mapping[str, Any]) -> Self:
        """Decode as the base class does.

        :raises DecodeError: also for records that are cut short
        """
        heard = data.get("heard")
        pairs = None if heard is None else {life: (number, ago) for life, (number, ago) in heard.items()}
        records = data.get("records", b"")
        if len(records) % _RECORD_SIZE:
            raise DecodeError(f"`{len(records)}` bytes of records, expected a multiple of {_RECORD_SIZE}")
        return super(WriteNotice, cls).from_data({**data, "heard": pairs})


def encode_record(digest: bytes, stamp: int) -> bytes:
    """One of the ``records`` of a notice."""
    return digest + stamp.to_bytes(_STAMP_SIZE, "little")


@dataclass(slots=True)
class _Peer:
    """An agent as its messages show it, this one included.  Times are of the monotonic clock."""

    received_at: float
    life: str = ""
    number: int = 0
    heartbeat: int = 0
    heartbeat_at: float = 0.0
    #: All that it published before this moment was received; None: unknown.
    complete_until: float | None = None


@dataclass
class WriteExchange:
    """The protocol without a broker: call :meth:`tick` often, and :meth:`receive` for each message."""

    node: str
    marks: WriteMarks
    journal: WriteJournalReader
    publisher: Bus
    peers_file: Path
    forget: float = 600.0
    clock: Callable[[], float] = time.monotonic
    life: str = field(default_factory=lambda: uuid.uuid4().hex[:16])

    def __post_init__(self) -> None:
        self._number = 0
        self._next_heartbeat = -math.inf
        self._sent: dict[int, float] = {}
        self._peers = {name: _Peer(self.clock()) for name in (*_read_peers(self.peers_file), self.node)}

    def tick(self) -> None:
        """Publish new records, and a heartbeat when it is due."""
        new = self.journal.read()
        missed = self.marks.pop_loss()
        records = list(_newest_records(new))
        for first in range(0, len(records), _MAX_RECORDS):
            self._send(b"".join(records[first : first + _MAX_RECORDS]))
        now = self.clock()
        if missed or now >= self._next_heartbeat:
            self._next_heartbeat = now + HEARTBEAT_SECONDS
            self._remove_silent(now)
            heard = {
                peer.life: (peer.heartbeat, now - peer.heartbeat_at) for peer in self._peers.values() if peer.heartbeat
            }
            self._sent[self._number + 1] = now
            self._sent.pop(self._number + 1 - _MAX_SENT, None)
            if len(self._sent) > _MAX_SENT:
                del self._sent[min(self._sent)]
            self._send(b"", missed, heard)

    def receive(self, routing_key: str, body: bytes) -> None:
        """Handle a message of another agent, or one of our own that came back.

        :raises DecodeError: when it is no write notice
        """
        message = WriteNotice.decode(body)
        now = self.clock()
        peer = self._peers.get(message.node)
        if peer is None:
            peer = self._peers[message.node] = _Peer(now)
            self._save_peers()
        peer.received_at = now
        self._check_sequence(peer, message)
        if message.life != self.life:
            for key, stamp in message:
                self.marks.apply(key, stamp)
        if message.heard is not None:
            peer.heartbeat, peer.heartbeat_at = message.number, now
            own = (message.number, 0.0) if message.life == self.life else message.heard.get(self.life)
            if own is not None and own[0] in self._sent:
                number, ago = own
                moment = self._sent[number] + ago
                peer.complete_until = moment if peer.complete_until is None else max(moment, peer.complete_until)
        self._extend_trust()

    def _check_sequence(self, peer: _Peer, message: WriteNotice) -> None:
        """Mark all copies as doubtful when messages of the peer may have been missed."""
        if message.life == peer.life and message.number <= peer.number:
            return  # a publisher repeats unconfirmed messages
        follows = message.number == peer.number + 1 if message.life == peer.life else message.number == 1
        replaced = bool(peer.life) and message.life != peer.life
        if message.life != self.life and (not follows or replaced or message.missed):
            log.info("writes of node `%s` may have been missed; every copy will be compared", message.node)
            self.marks.mark_missed()
        if message.life != peer.life:
            peer.complete_until = None
        peer.life, peer.number = message.life, message.number

    def _extend_trust(self) -> None:
        moments = [peer.complete_until for peer in self._peers.values()]
        if any(moment is None for moment in moments):
            return
        until = min(moment for moment in moments if moment is not None) + TRUST_SECONDS
        self.marks.trust_until(int(until * 1e9))

    def _send(self, records: bytes, missed: bool = False, heard: Mapping[str, tuple[int, float]] | None = None) -> None:
        self._number += 1
        message = WriteNotice(self.node, self.life, self._number, records, missed, heard)
        self.publisher.publish(writes_routing_key(self.node), message.encode())

    def _remove_silent(self, now: float) -> None:
        silent = [
            name for name, peer in self._peers.items() if now - peer.received_at > self.forget and name != self.node
        ]
        for name in silent:
            log.warning("node `%s` has been silent for %g s and is no longer waited for", name, self.forget)
            del self._peers[name]
        if silent:
            self._save_peers()

    def _save_peers(self) -> None:
        fresh = self.peers_file.with_name(f".{self.peers_file.name}")
        try:
            fresh.write_text(json.dumps(sorted(self._peers)), encoding="utf-8")
            fresh.replace(self.peers_file)
        except OSError as error:
            log.warning("cannot remember the other nodes in `%s`: %s", self.peers_file, error)


def _newest_records(records: Iterable[Record]) -> Iterable[bytes]:
    """The newest state of each object, encoded."""
    stamps: dict[bytes, int] = {}
    for key, stamp in records:
        stamps[key] = stamp if stamp == BEGUN else max(stamp, stamps.get(key, ENDED))
    return (encode_record(key, stamp) for key, stamp in stamps.items())


def _read_peers(path: Path) -> list[str]:
    try:
        names = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return []
    return [name for name in names if isinstance(name, str)] if isinstance(names, list) else []
