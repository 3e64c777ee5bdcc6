"""Nodes tell each other of writes, so that no cache is wrong for more than a second.

Theory of operation:

* Workers write into the node's journal (:mod:`sluice_core.cache.write_journal`); every 20 ms the agent publishes what
  is new and applies what the others publish to the marks (:mod:`sluice_core.cache.write_marks`) of its own node.
* Messages of one life of an agent are numbered.  A gap, or a new life, means that something may have been
  missed: the marks get a new epoch, and every copy is compared with the disks before it is used again.
* Four times a second each agent sends a *beat*: a message that says which beats of the others it has
  heard, and how long ago.  So everybody knows, by its own clock alone, when at the earliest a beat that
  it hears was sent: after its own beat that is named there.  All that its sender told before has been heard
  by then, since a broker keeps the order of one channel.  The marks are trusted up to a second after the
  eldest of these moments.  An agent counts itself among the others, which shows that the broker is there.
* A broker that is away or slow, a node whose agent is silent, an agent of ours that died: in each case the
  moment passes and the node's workers ask the disks about each hit, until all is well again.
* Nodes are remembered in a file, so that one that is silent when this agent starts is waited for.  After
  ``forget`` seconds of silence it is taken for gone.
"""

from __future__ import annotations

import asyncio
import json
import logging
import math
import time
import uuid
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Final, Protocol, Self

from sluice_agent.settings import Settings
from sluice_core.cache.write_journal import JournalReader, Record
from sluice_core.cache.write_marks import BEGUN, DIGEST_SIZE, ENDED, Marks, open_marks
from sluice_core.connections.consumer import Consumer
from sluice_core.connections.exchanges import WRITES_EXCHANGE, writes_routing_key
from sluice_core.connections.publisher import Publisher
from sluice_core.errors import DecodeError, PeerError
from sluice_core.messages.base import Message

log = logging.getLogger(__name__)

BOUND: Final = 1.0
BEAT: Final = 0.25
_STEP: Final = 0.02
_AGAIN: Final = 5.0
_STAMP_SIZE: Final = 8
_RECORD_SIZE: Final = DIGEST_SIZE + _STAMP_SIZE
_MOST_RECORDS: Final = 4000
#: Own beats of which it is remembered when they were sent.
_REMEMBERED: Final = 64


@dataclass(frozen=True, slots=True)
class Writes(Message):
    """What one agent tells the others.

    ``life`` changes when the agent starts, ``number`` counts its messages from 1.  ``records`` are pairs of
    digest and stamp, 24 bytes each.  ``missed`` says that it could not learn of all writes of its node.
    ``heard``, in a beat, maps the life of each agent to the number of its last beat and the seconds since.
    """

    node: str
    life: str
    number: int
    records: bytes = b""
    missed: bool = False
    heard: Mapping[str, tuple[int, float]] | None = None

    binary: ClassVar[bool] = True

    def __iter__(self) -> Any:
        """The records."""
        for at in range(0, len(self.records), _RECORD_SIZE):
            end = at + DIGEST_SIZE
            yield self.records[at:end], int.from_bytes(self.records[end : end + _STAMP_SIZE], "little")

    @classmethod
    def from_data(cls, data: Mapping[str, Any]) -> Self:
        heard = data.get("heard")
        pairs = None if heard is None else {life: (number, ago) for life, (number, ago) in heard.items()}
        records = data.get("records", b"")
        if len(records) % _RECORD_SIZE:
            raise DecodeError(f"`{len(records)}` bytes of records, expected a multiple of {_RECORD_SIZE}")
        return super(Writes, cls).from_data({**data, "heard": pairs})


class Sender(Protocol):
    """What is needed of a publisher."""

    def publish(self, routing_key: str, body: bytes) -> None:
        """Send, without blocking."""


@dataclass(slots=True)
class _Peer:
    """Another agent, or this one as the broker shows it.  Times are on the monotonic clock."""

    heard_at: float
    life: str = ""
    number: int = 0
    beat: int = 0
    beat_at: float = 0.0
    #: All that it told before this moment has been heard; None: not yet.
    complete: float | None = None


@dataclass
class Gossip:
    """What is told and heard, without a broker: ``tick`` often, ``received`` for each message."""

    node: str
    marks: Marks
    journal: JournalReader
    sender: Sender
    known: Path
    forget: float = 600.0
    clock: Callable[[], float] = time.monotonic
    life: str = field(default_factory=lambda: uuid.uuid4().hex[:16])

    def __post_init__(self) -> None:
        self._number = 0
        self._next_beat = -math.inf
        self._sent: dict[int, float] = {}
        self._peers = {name: _Peer(self.clock()) for name in (*_remembered(self.known), self.node)}

    def tick(self) -> None:
        """Tell what is new; beat when it is time."""
        found = self.journal.read()
        missed = self.marks.take_complaint()
        records = list(_packed(found))
        for first in range(0, len(records), _MOST_RECORDS):
            self._send(b"".join(records[first : first + _MOST_RECORDS]))
        now = self.clock()
        if missed or now >= self._next_beat:
            self._next_beat = now + BEAT
            self._forget(now)
            heard = {peer.life: (peer.beat, now - peer.beat_at) for peer in self._peers.values() if peer.beat}
            self._sent[self._number + 1] = now
            self._sent.pop(self._number + 1 - _REMEMBERED, None)
            if len(self._sent) > _REMEMBERED:
                del self._sent[min(self._sent)]
            self._send(b"", missed, heard)

    def received(self, routing_key: str, body: bytes) -> None:
        """Another agent's message, or one of our own that came back.

        :raises DecodeError: when it is none
        """
        message = Writes.decode(body)
        now = self.clock()
        peer = self._peers.get(message.node)
        if peer is None:
            peer = self._peers[message.node] = _Peer(now)
            self._remember()
        peer.heard_at = now
        self._count(peer, message)
        if message.life != self.life:
            for key, found in message:
                self.marks.apply(key, found)
        if message.heard is not None:
            peer.beat, peer.beat_at = message.number, now
            mine = (message.number, 0.0) if message.life == self.life else message.heard.get(self.life)
            if mine is not None and mine[0] in self._sent:
                moment = self._sent[mine[0]] + mine[1]
                peer.complete = moment if peer.complete is None else max(moment, peer.complete)
        self._vouch()

    def _count(self, peer: _Peer, message: Writes) -> None:
        """See whether anything was missed."""
        again = message.life == peer.life and message.number <= peer.number
        if again:
            return  # a publisher repeats what was not confirmed
        follows = message.number == peer.number + 1 if message.life == peer.life else message.number == 1
        replaced = bool(peer.life) and message.life != peer.life
        if message.life != self.life and (not follows or replaced or message.missed):
            log.info("writes of node `%s` may have been missed; every copy will be compared", message.node)
            self.marks.missed()
        if message.life != peer.life:
            peer.complete = None
        peer.life, peer.number = message.life, message.number

    def _vouch(self) -> None:
        moments = [peer.complete for peer in self._peers.values()]
        if any(moment is None for moment in moments):
            return
        until = min(moment for moment in moments if moment is not None) + BOUND
        self.marks.trust(int(until * 1e9))

    def _send(self, records: bytes, missed: bool = False, heard: Mapping[str, tuple[int, float]] | None = None) -> None:
        self._number += 1
        message = Writes(self.node, self.life, self._number, records, missed, heard)
        self.sender.publish(writes_routing_key(self.node), message.encode())

    def _forget(self, now: float) -> None:
        gone = [name for name, peer in self._peers.items() if now - peer.heard_at > self.forget and name != self.node]
        for name in gone:
            log.warning("node `%s` has been silent for %g s and is no longer waited for", name, self.forget)
            del self._peers[name]
        if gone:
            self._remember()

    def _remember(self) -> None:
        fresh = self.known.with_name(f".{self.known.name}")
        try:
            fresh.write_text(json.dumps(sorted(self._peers)), encoding="utf-8")
            fresh.replace(self.known)
        except OSError as error:
            log.warning("cannot remember the other nodes in `%s`: %s", self.known, error)


class Invalidations:
    """The gossip of one node over a broker."""

    def __init__(self, node: str, amqp_url: str, folder: Path, group: str = "", forget: float = 600.0) -> None:
        self._node = node
        self._folder = folder
        self._group = group
        self._forget = forget
        self._publisher = Publisher(amqp_url, WRITES_EXCHANGE, limit=2000)
        self._consumer = Consumer(amqp_url, self._received, ["writes.#"], WRITES_EXCHANGE)
        self._gossip: Gossip | None = None

    async def run(self) -> None:
        """Tell and listen until cancelled; a folder that cannot be used is tried again."""
        marks = await self._open()
        journal = JournalReader(self._folder, marks)
        known = self._folder / "nodes"
        self._gossip = Gossip(self._node, marks, journal, self._publisher, known, self._forget)
        self._publisher.start()
        self._consumer.start()
        try:
            while True:
                self._tick(self._gossip)
                await asyncio.sleep(_STEP)
        finally:
            await self._publisher.close()
            await self._consumer.close()
            journal.close()
            marks.close()

    async def _open(self) -> Marks:
        while True:
            try:
                return open_marks(self._folder, self._group)
            except PeerError as error:  # the node's policies matter more than its cache
                log.error("%s; again in %g s", error, _AGAIN)
            await asyncio.sleep(_AGAIN)

    def _tick(self, gossip: Gossip) -> None:
        try:
            gossip.tick()
        except OSError as error:  # the others notice the silence
            log.warning("cannot read the journal in `%s`: %s", self._folder, error)

    def _received(self, routing_key: str, body: bytes) -> None:
        if self._gossip is not None:
            self._gossip.received(routing_key, body)


def of(settings: Settings) -> Invalidations:
    """What ``settings`` ask for; they name a folder and a broker."""
    folder = Path(settings.cache_dir)
    return Invalidations(settings.node, settings.amqp_url, folder, settings.worker_group, settings.cache_forget)


def _packed(records: Iterable[Record]) -> Iterable[bytes]:
    """The last word on each object, as bytes."""
    words: dict[bytes, int] = {}
    for key, found in records:
        words[key] = found if found == BEGUN else max(found, words.get(key, ENDED))
    for key, found in words.items():
        yield key + found.to_bytes(_STAMP_SIZE, "little")


def _remembered(path: Path) -> list[str]:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return []
    return [name for name in found if isinstance(name, str)] if isinstance(found, list) else []
