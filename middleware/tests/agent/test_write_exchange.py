"""Agents notify each other of writes: when marks are trusted, and for how long.  Every node has its own clock."""

import pytest

from sluice_agent.write_exchange import HEARTBEAT_SECONDS, TRUST_SECONDS, WriteExchange, WriteNotice
from sluice_core.cache.write_journal import WriteJournal, WriteJournalReader
from sluice_core.cache.write_marks import BEGUN, object_digest, open_write_marks
from sluice_core.errors import DecodeError

FORGET = 10.0
ONE, TWO = object_digest(b"/a/c/one"), object_digest(b"/a/c/two")


class Broker:
    """Delivers after ``delay`` seconds of true time, in order; nothing while it is ``away``."""

    def __init__(self):
        self.now = 0.0
        self.delay = 0.001
        self.away = False
        self.nodes = {}
        self._way = []

    def publish(self, key, body):
        self._way.append((self.now + self.delay, key, body))

    def step(self, seconds):
        """Advance the time; every agent ticks and receives the messages that arrive."""
        end = self.now + seconds
        while self.now < end:
            self.now += 0.02
            for node in self.nodes.values():
                if node.alive:
                    node.exchange.tick()
            if not self.away:
                while self._way and self._way[0][0] <= self.now:  # a broker keeps the order
                    _, key, body = self._way.pop(0)
                    for node in self.nodes.values():
                        node.hear(key, body)


class Node:
    def __init__(self, broker, folder, name, offset):
        self.broker, self.folder, self.name, self.offset = broker, folder / name, name, offset
        self.marks = open_write_marks(self.folder, slots=1024)
        self.journal = WriteJournal(self.folder, self.marks)
        self.until = 0.0
        self.alive = self.listening = True
        self.marks.trust_until = self.trust_until
        self.start()
        broker.nodes[name] = self

    def start(self):
        reader = WriteJournalReader(self.folder, self.marks)
        known = self.folder / "nodes"
        self.exchange = WriteExchange(self.name, self.marks, reader, self.broker, known, FORGET, self.clock)
        self.alive = True

    def clock(self):
        return self.broker.now + self.offset

    def trust_until(self, until):
        self.until = until / 1e9 - self.offset

    @property
    def is_trusted(self):
        return self.broker.now < self.until

    def hear(self, key, body):
        if self.alive and self.listening:
            self.exchange.receive(key, body)

    def write(self, key, found):
        self.marks.apply(key, found)
        self.journal.append(key, found)


@pytest.fixture
def broker():
    return Broker()


@pytest.fixture
def nodes(broker, tmp_path):
    return [Node(broker, tmp_path, name, offset) for name, offset in (("n1", 0.0), ("n2", 5000.0), ("n3", -77.0))]


def test_a_write_is_known_everywhere_within_a_moment(broker, nodes):
    broker.step(1)
    before = [node.marks.token(ONE) for node in nodes]
    nodes[0].write(ONE, BEGUN)
    broker.step(0.06)
    assert all(node.marks.token(ONE) % 2 for node in nodes)
    nodes[0].write(ONE, 5)
    broker.step(0.06)
    assert all(node.marks.newest(ONE) == 5 for node in nodes)
    assert all(node.marks.token(ONE) not in (token, 0) for node, token in zip(nodes, before, strict=True))


def test_marks_stay_trusted_without_faults_and_epochs_stay(broker, nodes):
    broker.step(1)
    epochs = [node.marks.epoch for node in nodes]
    for _ in range(100):
        broker.step(0.1)
        assert all(node.is_trusted for node in nodes)
    assert [node.marks.epoch for node in nodes] == epochs


def test_marks_are_not_trusted_before_all_peers_were_received(broker, nodes):
    nodes[2].alive = False
    broker.step(0.02)
    assert not any(node.is_trusted for node in nodes)


@pytest.mark.parametrize("trouble", ["broker away", "broker slow", "agent silent", "deaf"])
def test_a_lost_write_is_never_trusted_for_more_than_a_second(broker, nodes, trouble):
    broker.step(1)
    if trouble == "broker away":
        broker.away = True
    elif trouble == "broker slow":
        broker.delay = 5.0
    elif trouble == "agent silent":
        nodes[0].alive = False
    else:
        nodes[1].listening = False
    nodes[0].write(ONE, 5)
    written = broker.now
    while broker.now < written + 4:
        broker.step(0.04)
        stale = nodes[1].marks.newest(ONE) == 0
        assert not (stale and nodes[1].is_trusted and broker.now > written + TRUST_SECONDS)
    assert not nodes[1].is_trusted


@pytest.mark.parametrize("trouble", ["away", "delay"])
def test_after_an_outage_without_loss_copies_stay_valid(broker, nodes, trouble):
    broker.step(1)
    epochs = [node.marks.epoch for node in nodes]
    broker.away, broker.delay = trouble == "away", 5.0 if trouble == "delay" else broker.delay
    nodes[0].write(ONE, 5)
    broker.step(6)
    broker.away, broker.delay = False, 0.001
    broker.step(8)
    assert all(node.is_trusted and node.marks.newest(ONE) == 5 for node in nodes)
    assert [node.marks.epoch for node in nodes] == epochs


def test_an_agent_that_missed_a_message_gets_a_new_epoch(broker, nodes):
    broker.step(1)
    epochs = [node.marks.epoch for node in nodes]
    nodes[1].listening = False
    broker.step(3)
    nodes[1].listening = True
    broker.step(1)
    assert nodes[1].is_trusted
    assert nodes[1].marks.epoch != epochs[1]
    assert [nodes[0].marks.epoch, nodes[2].marks.epoch] == [epochs[0], epochs[2]]


def test_writes_during_the_death_of_an_agent_are_published_after_it(broker, nodes):
    broker.step(1)
    nodes[0].alive = False
    nodes[0].write(ONE, 5)
    broker.step(3)
    assert not nodes[1].is_trusted
    epoch = nodes[1].marks.epoch
    nodes[0].start()
    broker.step(1)
    assert nodes[1].is_trusted
    assert nodes[1].marks.newest(ONE) == 5
    assert nodes[1].marks.epoch != epoch


def test_a_missed_journal_record_gives_the_other_nodes_a_new_epoch(broker, nodes):
    broker.step(1)
    epochs = [node.marks.epoch for node in nodes]
    nodes[0].marks.report_loss()
    broker.step(0.1)
    assert nodes[0].marks.epoch == epochs[0]
    assert nodes[1].marks.epoch != epochs[1]
    assert nodes[2].marks.epoch != epochs[2]


def test_a_restarted_agent_waits_for_a_silent_peer(broker, nodes):
    broker.step(1)
    nodes[2].alive = False
    nodes[0].start()
    broker.step(5)
    assert not nodes[0].is_trusted
    broker.step(FORGET)
    assert nodes[0].is_trusted
    assert nodes[1].is_trusted


def test_a_single_node_is_trusted_while_the_broker_is_there(broker, tmp_path):
    node = Node(broker, tmp_path, "alone", 3.0)
    broker.step(1)
    epoch = node.marks.epoch
    assert node.is_trusted
    node.start()
    broker.step(1)
    assert node.is_trusted
    assert node.marks.epoch == epoch
    broker.away = True
    broker.step(TRUST_SECONDS + HEARTBEAT_SECONDS)
    assert not node.is_trusted


def test_a_repeated_message_is_no_gap(broker, nodes):
    broker.step(1)
    epoch = nodes[1].marks.epoch
    message = WriteNotice("n1", nodes[0].exchange.life, 2, ONE + (9).to_bytes(8, "little"))
    nodes[1].hear("writes.n1", message.encode())
    assert nodes[1].marks.epoch == epoch


def test_only_the_newest_state_of_an_object_is_published(broker, nodes):
    broker.step(1)
    for found in (BEGUN, 7, BEGUN, 6):
        nodes[0].write(ONE, found)
    nodes[0].write(TWO, 3)
    nodes[0].write(TWO, BEGUN)
    broker.step(0.06)
    assert nodes[1].marks.newest(ONE) == 6
    assert nodes[1].marks.token(TWO) % 2


@pytest.mark.parametrize("records", [b"short", b"x" * 25])
def test_a_message_of_another_shape_is_refused(records):
    raw = WriteNotice("n", "l", 1, records).encode()
    with pytest.raises(DecodeError, match="multiple of 24"):
        WriteNotice.decode(raw)


def test_a_message_survives_the_wire():
    message = WriteNotice("n", "l", 7, ONE + bytes(8), True, {"other": (3, 0.25)})
    assert WriteNotice.decode(message.encode()) == message
    assert list(message) == [(ONE, 0)]
