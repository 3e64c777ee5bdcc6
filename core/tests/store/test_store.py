"""The store against a real Redis; every test of this table runs on both of its classes."""

import asyncio
import json
import logging
from dataclasses import replace

import pytest

from sluice_core.errors import Conflict, PeerError
from sluice_core.messages.nodes import NodeReport
from sluice_core.messages.policies import Change, PolicyState
from sluice_core.store.records import Committed, Draft, Gap, Head
from sluice_core.store.store import AsyncStore, Store
from sluice_core.testing import assignment, policy


class Blocking:
    """An AsyncStore with the methods of a Store, so that one suite tests both."""

    def __init__(self, url, **options):
        self._runner = asyncio.Runner()
        self._store = AsyncStore(url, **options)
        self.keys = self._store.keys

    def __getattr__(self, name):
        method = getattr(self._store, name)
        return lambda *given, **named: self._runner.run(method(*given, **named))

    def close(self):
        self._runner.run(self._store.close())
        self._runner.close()


@pytest.fixture(params=[Store, Blocking], ids=["sync", "asyncio"])
def either(request, redis_server, store):
    made = request.param(redis_server.url)
    yield made
    made.close()


def test_an_empty_redis_has_no_history(either):
    assert either.head() == Head("", 0)
    assert either.load().assignments == ()
    assert either.policies() == []
    assert either.policy("p1") is None
    assert either.state("p1") is None
    assert either.changes_after(0) == []
    assert either.head_and_adopted() == (Head(), Head())


def test_first_commit_makes_a_history_and_each_moves_the_epoch(either):
    first = either.commit(Draft("me", puts=(assignment("p1.0"),)))
    second = either.commit(Draft("me", puts=(assignment("p2.0"),)))
    assert len(first.history) == 32
    assert first == Committed(first.history, 1, 1)
    assert second == Committed(first.history, 2, 2)
    assert either.head() == Head(first.history, 2)
    assert [one.id for one in either.assignments()] == ["p1.0", "p2.0"]


def test_what_was_committed_is_read_back_equal(either):
    put = assignment("p1.0", "AUTH_a/c", when=["size", ">", 10], params={"level": 3}, created=1_700_000_000_123)
    state = PolicyState("p1", "active", {"": {"calm": 1}})
    done = either.commit(Draft("me", puts=(put,), policies=(policy("p1"),), states=(state,)))
    assert either.assignments() == [put]
    assert either.load().assignments == (put,)
    assert either.policy("p1") == (policy("p1"), done.version)
    assert either.policies() == [(policy("p1"), done.version)]
    assert either.state("p1") == state
    assert either.states() == {"p1": state}
    assert either.epochs() == {"p1": 1}


def test_policies_come_oldest_first(either):
    for name, created in (("b", 2), ("a", 2), ("c", 1)):
        either.commit(Draft("me", policies=(policy(name, created),)))
    assert [one.id for one, _ in either.policies()] == ["c", "a", "b"]


def test_the_stream_tells_each_change_whole(either):
    put = assignment("p1.0")
    history = either.commit(Draft("me", puts=(put,), policies=(policy("p1"),))).history
    either.commit(Draft("you", drops=("p1.0",)))
    first, second = either.changes_after(0)
    assert replace(first, at=0) == Change(1, history, 0, "me", (put,), (), ("p1",))
    assert replace(second, at=0) == Change(2, history, 0, "you", (), ("p1.0",), ())
    assert either.changes_after(1) == [second]
    assert either.changes_after(0, count=1) == [first]


def test_states_alone_leave_the_epoch(either):
    either.commit(Draft("me", puts=(assignment("p1.0"),)))
    done = either.commit(Draft("me", states=(PolicyState("p1"),)))
    assert done.epoch == 1
    assert either.changes_after(1) == []


@pytest.mark.parametrize(
    "expect",
    [
        {"policy/p1": 0},
        {"policy/p1": 2},
        {"state/p1": 0},
        {"assignment/p1.0": 7},
        {"assignment/p9.0": 1},
        {"policy/p1": 1, "state/p9": 1},
    ],
    ids=str,
)
def test_a_wrong_version_changes_nothing_and_is_named(either, expect):
    draft = Draft("me", puts=(assignment("p1.0"),), policies=(policy("p1"),), states=(PolicyState("p1"),))
    either.commit(draft)
    name = sorted(expect)[-1]
    with pytest.raises(Conflict, match=name):
        either.commit(Draft("me", puts=(assignment("p2.0"),), expect=expect))
    assert either.head().epoch == 1
    assert [one.id for one in either.assignments()] == ["p1.0"]


def test_the_right_versions_let_a_change_through(either):
    done = either.commit(Draft("me", policies=(policy("p1"),), expect={"policy/p1": 0}))
    again = either.commit(Draft("me", policies=(policy("p1", 9),), expect={"policy/p1": done.version}))
    assert either.policy("p1") == (policy("p1", 9), again.version)


def test_a_thing_made_again_never_has_an_old_version(either):
    first = either.commit(Draft("me", puts=(assignment("p1.0"),)))
    either.commit(Draft("me", drops=("p1.0",)))
    either.commit(Draft("me", puts=(assignment("p1.0"),)))
    with pytest.raises(Conflict):
        either.commit(Draft("me", drops=("p1.0",), expect={"assignment/p1.0": first.version}))


def test_another_history_is_refused(either):
    with pytest.raises(Conflict, match="history"):
        either.commit(Draft("me", puts=(assignment(),), history="gone"))
    assert either.head() == Head()
    history = either.commit(Draft("me", puts=(assignment(),))).history
    assert either.commit(Draft("me", drops=("p1.0",), history=history)).epoch == 2


def test_deleting_a_policy_takes_everything_of_it(either):
    mine = [assignment(f"p1.{n}") for n in range(3)] + [assignment("p1.0@AUTH_a/c.x")]
    others = [assignment("p11.0"), assignment("p.1.0")]
    either.commit(
        Draft("me", puts=(*mine, *others), policies=(policy("p1"), policy("p2")), states=(PolicyState("p1"),))
    )
    either.observe({"p1": {"values": {}}})
    either.watch("p1", 60)
    either.commit(Draft("me", drops=("p1.0",), policy_drops=("p1",)))
    assert [one.id for one in either.assignments()] == ["p.1.0", "p11.0"]
    assert [one.id for one, _ in either.policies()] == ["p2"]
    assert (either.states(), either.observed("p1"), either.watched(0)) == ({}, None, [])
    assert "p1" not in either.epochs()
    change = either.changes_after(1)[0]
    assert sorted(change.drops) == sorted(one.id for one in mine)
    assert change.policies == ("p1",)
    assert either.version("policy/p1") == either.version("assignment/p1.1") == either.version("state/p1") == 0


def test_a_policy_whose_id_looks_like_a_pattern_takes_only_its_own(either):
    either.commit(Draft("me", puts=(assignment("p*.0"), assignment("p1.0"))))
    either.commit(Draft("me", policy_drops=("p*",)))
    assert [one.id for one in either.assignments()] == ["p1.0"]


def test_epochs_name_the_last_change_of_each_policy(either):
    either.commit(Draft("me", policies=(policy("a.b"),), puts=(assignment("a.b.0"),)))
    either.commit(Draft("me", policies=(policy("p2"),)))
    either.commit(Draft("me", drops=("a.b.0",)))
    assert either.epochs() == {"a.b": 3, "p2": 2}


def test_a_trimmed_stream_is_a_gap(store, monkeypatch):
    monkeypatch.setattr("sluice_core.store.commit.STREAM_LENGTH", 1)
    for n in range(250):
        store.commit(Draft("me", puts=(assignment(f"p{n}.0"),)))
    assert isinstance(store.changes_after(0), Gap)
    assert [change.epoch for change in store.changes_after(248)] == [249, 250]


def test_an_undecodable_document_is_skipped_and_named(either, store, caplog):
    either.commit(Draft("me", puts=(assignment("p1.0"), assignment("p2.0")), policies=(policy("p1"), policy("p2"))))
    store.client.hset(store.keys.assignments, "p1.0", b'{"v":1}')
    store.client.hset(store.keys.policies, "p1", b"nonsense")
    with caplog.at_level(logging.ERROR):
        loaded = either.load()
        assert [one.id for one, _ in either.policies()] == ["p2"]
    assert [one.id for one in loaded.assignments] == ["p2.0"]
    assert list(loaded.broken) == ["p1.0"]
    assert "`p1.0`" in caplog.text
    assert "nonsense" in caplog.text


def test_an_undecodable_change_is_a_gap_but_not_for_those_before_it(either, store):
    either.commit(Draft("me", puts=(assignment("p1.0"),)))
    store.client.xadd(store.keys.changes, {"history": "h", "change": "{}"}, id="2-0")
    assert len(either.changes_after(0)) == 1
    assert isinstance(either.changes_after(1), Gap)


def test_reports_are_kept_and_published(either, store):
    listener = store.client.pubsub(ignore_subscribe_messages=True)
    listener.subscribe(store.keys.acks)
    listener.get_message(timeout=5)
    either.report(NodeReport("n1", "h", 3))
    assert listener.get_message(timeout=5)["data"] == b"n1 3"
    listener.close()
    assert either.nodes() == [NodeReport("n1", "h", 3)]
    assert either.forget_node("n1") is True
    assert either.forget_node("n1") is False


def test_a_report_travels_with_the_question_for_changes(either):
    either.commit(Draft("me", puts=(assignment(),)))
    assert len(either.changes_after(0, block_ms=10, report=NodeReport("n1", "h", 0))) == 1
    assert either.nodes()[0].node == "n1"


def test_watching_ends_by_itself(either):
    either.watch("p1", 60)
    either.watch("p2", -60)
    assert either.watched(0) == ["p2", "p1"]
    assert either.watched(4e9) == []
    assert either.watched(0) == []


def test_observed_values_and_host_reports_come_back(either):
    either.observe({"p1": {"values": {"PUTS_SEC": 7.0}}})
    either.observe({})
    assert either.observed("p1") == {"values": {"PUTS_SEC": 7.0}}
    either.host_report("h1", {"actors": 3})
    assert either.hosts() == {"h1": {"actors": 3}}


def test_adopting_names_history_and_epoch_and_changes_nothing(either, store):
    done = either.commit(Draft("me", puts=(assignment(),)))
    head = Head(done.history, 1)
    assert either.adopt("me") == head
    assert either.head_and_adopted() == (head, head)
    assert either.changes_after(1) == []
    (kept,) = map(json.loads, store.client.lrange(store.keys.adoptions, 0, -1))
    assert (kept["history"], kept["epoch"], kept["by"]) == (done.history, 1, "me")


def test_adopting_an_empty_redis_begins_a_history(either):
    adopted = either.adopt("me")
    assert adopted.history
    assert adopted.epoch == 0
    assert either.head_and_adopted() == (adopted, adopted)
    assert either.commit(Draft("me", puts=(assignment(),))).history == adopted.history


def test_the_script_comes_back_after_redis_forgot_it(either, store):
    either.commit(Draft("me", puts=(assignment(),)))
    store.client.script_flush()
    assert either.commit(Draft("me", puts=(assignment(),))).epoch == 2


@pytest.mark.parametrize("face", [Store, Blocking])
def test_a_redis_that_is_away_is_a_peer_error_without_the_password(face):
    away = face("redis://:secret@127.0.0.1:1/0", timeout=1.0)
    with pytest.raises(PeerError, match=r"127\.0\.0\.1:1") as caught:
        away.head()
    assert "secret" not in str(caught.value)
    away.close()


def test_a_blocking_read_waits_and_is_woken(redis_server, store):
    async def story():
        mine = AsyncStore(redis_server.url)
        waiting = asyncio.create_task(mine.changes_after(0, block_ms=2000))
        while not store.client.info("clients")["blocked_clients"]:
            await asyncio.sleep(0)
        await mine.commit(Draft("me", puts=(assignment(),)))
        found = await waiting
        await mine.close()
        return found

    assert [change.epoch for change in asyncio.run(story())] == [1]


def test_a_prefix_keeps_two_clusters_apart(redis_server, store):
    other = Store(redis_server.url, prefix="other")
    other.commit(Draft("me", puts=(assignment(),)))
    assert store.head() == Head()
    other.close()
