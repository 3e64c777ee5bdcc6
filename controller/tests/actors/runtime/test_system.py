"""The actor runtime: order, slices, supervision."""

import asyncio
import logging
import time

import pytest

from sluice_actors.runtime import actor as runtime_actor
from sluice_actors.runtime.actor import Actor
from sluice_actors.runtime.system import ActorSystem


class Recorder(Actor):
    """Records the calls of its methods; a message that is an exception is raised."""

    __slots__ = ("log", "starts_badly", "waiting")

    def __init__(self, starts_badly=0):
        super().__init__()
        self.log = []
        self.starts_badly = starts_badly
        self.waiting = {}

    def _note(self, what):
        self.log.append(what)
        for event in self.waiting.pop(what, ()):
            event.set()

    async def wait_until(self, what):
        if what in self.log:
            return
        event = asyncio.Event()
        self.waiting.setdefault(what, []).append(event)
        async with asyncio.timeout(5):
            await event.wait()

    def on_start(self):
        self._note("start")
        if self.starts_badly:
            self.starts_badly -= 1
            raise ValueError("bad start")

    def on_message(self, message):
        if isinstance(message, Exception):
            raise message
        self._note(message)

    def on_failure(self, error):
        self._note(("failed", str(error)))

    def on_stop(self):
        self._note("stop")


@pytest.fixture
def brief(monkeypatch):
    monkeypatch.setattr(runtime_actor, "BACKOFF_FIRST", 0.01)
    monkeypatch.setattr(runtime_actor, "BACKOFF_LAST", 0.04)


def test_messages_are_delivered_in_the_order_in_which_they_were_sent():
    async def story():
        system, one, other = ActorSystem(), Recorder(), Recorder()
        system.spawn(one)
        system.spawn(other)
        system.send(one, 1)
        system.send_each((actor, number) for number in (2, 3) for actor in (one, other))
        system.send(one, 4)
        await system.close()
        return one.log, other.log

    assert asyncio.run(story()) == (["start", 1, 2, 3, 4, "stop"], ["start", 2, 3, "stop"])


def test_an_exception_takes_down_one_actor_and_not_its_neighbour(brief, caplog):
    async def story():
        system, bad, good = ActorSystem(), Recorder(), Recorder()
        system.spawn(bad)
        system.spawn(good)
        for actor in (bad, good):
            system.send(actor, "before")
        system.send(bad, ValueError("oh"))
        for actor in (bad, good):
            system.send(actor, "after")
        await system.idle()
        assert not bad.running
        assert good.log == ["start", "before", "after"]
        await bad.wait_until("after")
        assert bad.log == ["start", "before", ("failed", "oh"), "start", "after"]
        assert (system.counts.failures, system.counts.restarts, system.suspended) == (1, 1, 0)
        await system.close()

    asyncio.run(story())


def test_a_failing_start_is_tried_again_with_growing_pauses(brief, caplog):
    async def story():
        system, actor = ActorSystem(), Recorder(starts_badly=3)
        began = time.monotonic()
        system.spawn(actor)
        system.send(actor, "hello")
        await actor.wait_until("hello")
        await system.close()
        return time.monotonic() - began, actor.log

    took, log = asyncio.run(story())
    assert log.count("start") == 4
    assert took >= 0.01 + 0.02 + 0.04


def test_a_burst_of_failures_is_logged_once(brief, caplog):
    async def story():
        system, actor = ActorSystem(), Recorder(starts_badly=4)
        system.spawn(actor)
        system.send(actor, "hello")
        await actor.wait_until("hello")
        await system.close()
        return system.counts.failures

    with caplog.at_level(logging.ERROR):
        assert asyncio.run(story()) == 4
    assert len([record for record in caplog.records if "failed, restart" in record.message]) == 1


def test_pauses_begin_again_after_a_healthy_time(brief, monkeypatch):
    async def story():
        clock = [0.0]
        system, actor = ActorSystem(clock=lambda: clock[0]), Recorder(starts_badly=3)
        system.spawn(actor)
        system.send(actor, "well")
        await actor.wait_until("well")
        (state,) = system._supervisor._states.values()
        assert state.failures == 3
        clock[0] += runtime_actor.HEALTHY_AFTER + 1
        system.send(actor, ValueError("again"))
        await system.idle()
        assert (state.failures, state.delay) == (1, 0.01)
        await system.close()

    asyncio.run(story())


def test_a_suspended_actor_keeps_its_newest_messages_only(brief):
    async def story():
        system, actor = ActorSystem(mailbox=3), Recorder()
        system.spawn(actor)
        system.send(actor, ValueError("oh"))
        for number in range(5):
            system.send(actor, number)
        await system.idle()
        await actor.wait_until(4)
        dropped = system.counts.dropped
        await system.close()
        return actor.log, dropped

    assert asyncio.run(story()) == (["start", ("failed", "oh"), "start", 2, 3, 4, "stop"], 2)


def test_the_loop_gets_its_turn_while_many_messages_are_delivered():
    class Slow(Actor):
        __slots__ = ()

        def on_message(self, message):
            wait_until = time.perf_counter() + 0.0005
            while time.perf_counter() < wait_until:
                pass

    async def story():
        system, actor = ActorSystem(), Slow()
        system.spawn(actor)
        system.send_each((actor, number) for number in range(400))
        turns = 0
        done = asyncio.ensure_future(system.idle())
        while not done.done():
            turns += 1
            await asyncio.sleep(0)
        await system.close()
        return turns

    # 200 ms of work in slices of 5 ms (checked every 16 messages, so of 8 ms at most)
    assert asyncio.run(story()) >= 15


def test_long_work_is_resumed_and_keeps_the_order():
    class Family(Recorder):
        __slots__ = ()

        def on_message(self, message):
            for step in range(3):
                self._note((message, step))
                time.sleep(0.006)
                yield None

    async def story():
        system, family, other = ActorSystem(), Family(), Recorder()
        system.spawn(family)
        system.spawn(other)
        system.send_each([(family, "a"), (other, "x"), (family, "b")])
        await system.idle()
        await system.close()
        return family.log, other.log

    family, other = asyncio.run(story())
    assert family == ["start", *((m, s) for m in "ab" for s in range(3)), "stop"]
    assert other == ["start", "x", "stop"]


def test_long_work_that_fails_suspends_its_actor(brief):
    class Family(Recorder):
        __slots__ = ()

        def on_message(self, message):
            self._note(message)
            yield None
            if message == "bad":
                raise ValueError("half way")

    async def story():
        system, family = ActorSystem(), Family()
        system.spawn(family)
        system.send(family, "bad")
        system.send(family, "good")
        await family.wait_until("good")
        await system.close()
        return family.log

    assert asyncio.run(story()) == ["start", "bad", ("failed", "half way"), "start", "good", "stop"]


def test_a_source_that_fails_is_dropped_and_the_system_goes_on(caplog):
    def broken(actor):
        yield actor, 1
        raise RuntimeError("no more")

    async def story():
        system, actor = ActorSystem(), Recorder()
        system.spawn(actor)
        system.send_each(broken(actor))
        system.send(actor, 2)
        await system.close()
        return actor.log

    assert asyncio.run(story()) == ["start", 1, 2, "stop"]
    assert "a source of messages failed" in caplog.text


def test_a_stopped_actor_gets_nothing_more_even_when_it_waited_for_its_restart(brief):
    async def story():
        system, actor = ActorSystem(), Recorder()
        system.spawn(actor)
        system.send(actor, ValueError("oh"))
        await system.idle()
        system.stop(actor)
        system.stop(actor)
        system.send(actor, "late")
        await system.idle()
        assert len(system) == 0
        assert system.suspended == 0
        await system.close()
        return actor.log, system.counts.dropped

    assert asyncio.run(story()) == (["start", ("failed", "oh"), "stop"], 1)


def test_an_actor_starts_once_and_not_in_a_closed_system():
    async def story():
        system, actor = ActorSystem(), Recorder()
        system.spawn(actor)
        await system.close()
        with pytest.raises(RuntimeError, match="closed"):
            system.spawn(Recorder())
        other = ActorSystem()
        with pytest.raises(RuntimeError, match="starts once"):
            other.spawn(actor)

    asyncio.run(story())
