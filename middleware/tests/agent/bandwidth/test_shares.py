"""Which shares count, and that they stay in force after a restart of the agent."""

import os
import time

import pytest

from sluice_agent.bandwidth.shares import ShareReceiver, differs
from sluice_core.describe import PROXY
from sluice_core.errors import DecodeError
from sluice_core.messages.bandwidth import GET, Share, Shares


def shares(number, rate=100.0, term=1, node="n1"):
    return Shares(node, term, number, 0.0, (Share(PROXY, "a", "", GET, 0, rate),))


class Box:
    def __init__(self, file=None):
        self.now = 100.0
        self.took = []
        self.inbox = ShareReceiver("n1", self.took.append, file, lambda: self.now)

    def come(self, message):
        self.inbox.receive("shares.n1", message.encode())

    @property
    def orders(self):
        return [(one.term, one.number) for one in self.took]


def test_only_newer_shares_are_applied():
    box = Box()
    for one in (shares(5), shares(5), shares(4), shares(1, term=2), shares(9), shares(2, term=2)):
        box.come(one)
    assert box.orders == [(1, 5), (2, 1), (2, 2)]


def test_shares_of_another_node_are_ignored():
    box = Box()
    box.come(shares(1, node="n2"))
    assert box.took == []


def test_an_invalid_message_of_shares_is_refused():
    with pytest.raises(DecodeError):
        Box().inbox.receive("shares.n1", b"nonsense")


def test_shares_stay_in_force_without_news_and_that_is_logged_once(caplog):
    box = Box()
    box.come(shares(1))
    for _ in range(30):
        box.now += 1
        box.inbox.tick()
    assert caplog.text.count("stay in force") == 1
    assert box.inbox.last == shares(1)


def test_an_earlier_term_is_accepted_after_ten_silent_seconds():
    box = Box()
    box.come(shares(500, term=9))
    box.now += 5
    box.come(shares(1))
    assert box.orders == [(9, 500)]
    box.now += 6
    box.come(shares(2))
    box.come(shares(3))
    assert box.orders == [(9, 500), (1, 2), (1, 3)]


def test_a_restarted_agent_applies_the_last_shares(tmp_path):
    file = tmp_path / "snapshot.shares"
    box = Box(file)
    box.come(shares(1))
    box.inbox.tick()
    again = Box(file)
    again.inbox.restore()
    assert again.took == [shares(1)]
    again.come(shares(1, 200.0))
    assert again.took == [shares(1)]


def test_missing_broken_and_foreign_files_are_ignored(tmp_path):
    file = tmp_path / "snapshot.shares"
    Box(file).inbox.restore()
    for content in (b"nonsense", shares(1, node="n2").encode()):
        file.write_bytes(content)
        box = Box(file)
        box.inbox.restore()
        assert box.took == []


def test_the_file_is_not_written_without_newer_shares(tmp_path):
    file = tmp_path / "snapshot.shares"
    box = Box(file)
    box.come(shares(1))
    box.inbox.tick()
    file.unlink()
    for _ in range(60):
        box.now += 1
        box.inbox.tick()
    assert not file.exists()


@pytest.mark.parametrize("age", [-70, 2, 86_400])
def test_a_file_of_any_age_is_in_force_until_newer_shares_come(tmp_path, age):
    file = tmp_path / "snapshot.shares"
    file.write_bytes(shares(7).encode())
    os.utime(file, (time.time() - age,) * 2)
    box = Box(file)
    box.inbox.restore()
    box.come(shares(7, 200.0))
    box.come(shares(8, 300.0))
    assert box.took == [shares(7), shares(8, 300.0)]


def test_the_file_is_written_when_something_changed_or_now_and_then(tmp_path):
    file = tmp_path / "snapshot.shares"
    box = Box(file)
    written = []
    for number in range(40):
        box.come(shares(number, 100.0 if number < 20 else 120.0))
        box.inbox.tick()
        kept = Shares.decode(file.read_bytes()).number
        if not written or written[-1] != kept:
            written.append(kept)
        box.now += 1
    assert written == [0, 15, 20, 35]
    assert [path.name for path in tmp_path.iterdir()] == [file.name]


def test_a_change_of_a_tenth_is_not_written():
    assert not differs(shares(1), shares(2, 109.0))
    assert differs(shares(1), shares(2, 120.0))
    assert differs(None, shares(1))
    assert differs(shares(1), Shares("n1", 1, 2, 0.0))
