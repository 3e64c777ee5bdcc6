"""Events of a host reach the log, also if Redis was unreachable when they happened."""

import pytest
from tests.support.actors.host import HostScenario, run_scenario
from tests.support.recordings.redis_answers import redis_away

from sluice_actors.runtime.event_log import EventLog
from sluice_actors.testing import plan_of
from sluice_core.errors import PeerError
from sluice_core.messages.events import CONTROLLER_FAILED, POLICY_SUSPENDED
from sluice_core.messages.policies import Policy
from sluice_core.store.events import FIRST
from sluice_core.store.records import Draft


@pytest.fixture
def story(redis_server):
    return HostScenario(redis_server.url)


async def next_events(store):
    found = await store.events_after(FIRST, 100, 3000)
    while not found.events:
        found = await store.events_after(FIRST, 100, 3000)
    return found.events


def test_events_wait_for_redis_in_their_order(story, monkeypatch):
    async def test():
        log = EventLog(story.store, "h1", lambda: 5.0)
        append = story.store.append_events

        async def away(events):
            raise redis_away()

        monkeypatch.setattr(type(story.store), "append_events", property(lambda self: away))
        log.add(CONTROLLER_FAILED, "first", subject="c1")
        log.add(CONTROLLER_FAILED, "second", subject="c2", source="other")
        with pytest.raises(PeerError):
            await log._step()
        monkeypatch.setattr(type(story.store), "append_events", property(lambda self: append))
        log.add(CONTROLLER_FAILED, "third", subject="c3")
        await log._step()
        found = await next_events(story.store)
        assert [(one.text, one.source, one.at) for one in found] == [
            ("first", "h1", 5.0),
            ("second", "other", 5.0),
            ("third", "h1", 5.0),
        ]
        await story.store.close()

    run_scenario(test())


def test_what_waits_is_written_at_the_end(story):
    async def test():
        log = EventLog(story.store, "h1", lambda: 5.0)
        log.add(CONTROLLER_FAILED, "last")
        await log.close()
        assert [one.text for one in await next_events(story.store)] == ["last"]
        await story.store.close()

    run_scenario(test())


def test_a_suspended_policy_is_logged_once_however_often_it_fails(story, monkeypatch):
    async def test():
        await story.policy("p1", plan_of(["metric", "PUTS_SEC", ">", 3]))
        async with story.host() as host:
            await story.ready(host, "p1")
            actor = host.policies.actors["p1"]
            for _ in range(3):
                actor.on_failure(ValueError("a bug"))
            events = await next_events(story.store)
            assert [(one.kind, one.policy, one.source) for one in events] == [(POLICY_SUSPENDED, "p1", "h1")]
            assert events[0].text == "policy `p1` is suspended: ValueError: a bug"
        await story.store.close()

    run_scenario(test())


def test_a_policy_that_cannot_run_is_logged(story):
    async def test():
        broken = Policy("p1", "FOR", "FOR", {"language": 1}, True, 5)
        await story.store.commit(Draft("test", policies=(broken,)))
        async with story.host():
            (event,) = await next_events(story.store)
            assert (event.kind, event.policy) == (POLICY_SUSPENDED, "p1")
            assert event.text.startswith("policy `p1` cannot run: ")
        await story.store.close()

    run_scenario(test())
