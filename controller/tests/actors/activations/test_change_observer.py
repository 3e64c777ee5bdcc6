"""Activations for static policies: an actor host sees them in the change stream and calls the service."""

import asyncio
import json

from tests.support.actors.host import HostScenario, run_scenario, wait_until
from tests.support.actors.ownership import SingleHost

from sluice_actors.activations.calls import Activations
from sluice_actors.activations.change_observer import ChangeObserver
from sluice_core.connections.url_allowlist import UrlAllowlist
from sluice_core.describe import SERVICE
from sluice_core.messages.policies import Change
from sluice_core.messages.registry import Activation, ServiceState
from sluice_core.store.fencing import slot_of
from sluice_core.store.records import Draft
from sluice_core.testing import assignment, policy


class KeptStates:
    """Stores no states; ``forgotten`` are the assignments whose states were removed."""

    def __init__(self):
        self.forgotten = []

    def keep(self, assignment, state):
        assert state is None
        self.forgotten.append(assignment)


class Called:
    """Activations that record the calls."""

    def __init__(self, monkeypatch):
        self.made = []
        self.activations = Activations(UrlAllowlist(), KeptStates())
        monkeypatch.setattr(Activations, "call", lambda _, assignment, undo: self.take(assignment, undo))

    def take(self, assignment, undo):
        self.made.append(("off" if undo else "on", assignment.id, assignment.path()))

    def since(self):
        made, self.made = self.made, []
        return made


class Owner(SingleHost):
    """Owns the given policies."""

    def __init__(self, *names):
        self.names = set(names)

    def owns(self, name):
        return name in self.names


def change(by="admin", puts=(), drops=(), **more):
    return Change(1, "h", 0.0, by, tuple(puts), tuple(drops), **more)


def witnessed(redis_url, monkeypatch, owner, tell):
    async def test():
        story = HostScenario(redis_url)
        called = Called(monkeypatch)
        now = [100.0]
        called.activations.replace([Activation("noop", "http://s/on", "http://s/off").entry()])
        change_observer = ChangeObserver(story.store, called.activations, owner, lambda: now[0])
        await change_observer.reread("")
        await tell(change_observer, called, now, story)
        await story.store.close()

    run_scenario(test())


def test_services_are_called_for_what_the_api_puts_and_drops(redis_server, monkeypatch):
    async def tell(change_observer, called, now, story):
        await change_observer.apply(change(puts=[assignment("p.0", "AUTH_a"), assignment("p.1", "AUTH_a", "tagging")]))
        assert called.since() == [("on", "p.0", "AUTH_a")]
        await change_observer.apply(change(drops=["p.0", "p.1", "q.0"]))
        assert called.since() == [("off", "p.0", "AUTH_a")]
        await change_observer.apply(change(drops=["p.0"]))
        assert called.since() == []

    witnessed(redis_server.url, monkeypatch, Owner("p"), tell)


def test_a_replaced_assignment_is_called_off_where_it_ended(redis_server, monkeypatch):
    async def tell(change_observer, called, now, story):
        await change_observer.apply(change(puts=[assignment("p.0", "AUTH_a")]))
        called.since()
        await change_observer.apply(change(puts=[assignment("p.0", "AUTH_a", params={"x": 1})], drops=["p.0"]))
        assert called.since() == [("on", "p.0", "AUTH_a")]
        await change_observer.apply(change(puts=[assignment("p.0", "AUTH_b")], drops=["p.0"]))
        assert called.since() == [("off", "p.0", "AUTH_a"), ("on", "p.0", "AUTH_b")]
        await change_observer.apply(change(puts=[assignment("p.0", "AUTH_b", "tagging")]))
        assert called.since() == [("off", "p.0", "AUTH_b")]

    witnessed(redis_server.url, monkeypatch, Owner("p"), tell)


def test_assignments_of_actor_hosts_are_called_off_only_when_the_api_drops_them(redis_server, monkeypatch):
    async def tell(change_observer, called, now, story):
        await change_observer.apply(change("actors@h2", [assignment("p.0@AUTH_m", "AUTH_a", member="AUTH_m")]))
        assert called.since() == []
        await change_observer.apply(change(drops=["p.0@AUTH_m"]))
        assert called.since() == [("off", "p.0@AUTH_m", "AUTH_m")]
        await change_observer.apply(change("actors@h2", [assignment("controller:busy.abc", "AUTH_a")]))
        await change_observer.apply(change(drops=["controller:busy.abc"]))
        assert called.since() == [("off", "controller:busy.abc", "AUTH_a")]

    witnessed(redis_server.url, monkeypatch, Owner("p", "controller/busy"), tell)


def test_a_new_owner_makes_the_calls_that_nobody_made(redis_server, monkeypatch):
    owner = Owner()

    async def tell(change_observer, called, now, story):
        await change_observer.apply(change(puts=[assignment("old.0", "AUTH_a")]))
        now[0] += 20
        await change_observer.apply(change(puts=[assignment("p.0", "AUTH_a"), assignment("q.0", "AUTH_a")]))
        assert called.since() == []
        change_observer.slots_gained({slot_of("p"), slot_of("old")})
        assert called.since() == [("on", "p.0", "AUTH_a")]

    witnessed(redis_server.url, monkeypatch, owner, tell)


def test_assignments_older_than_their_activation_are_known(redis_server, monkeypatch):
    async def tell(change_observer, called, now, story):
        await story.store.commit(Draft("admin", puts=(assignment("p.0", "AUTH_a", "tagging"),)))
        entry = Activation("tagging", "http://s/on", "http://s/off").entry()
        registered = change(entries=(entry,))
        change_observer.activations.apply(registered)
        await change_observer.apply(registered)
        await change_observer.apply(change(drops=["p.0"]))
        assert called.since() == [("off", "p.0", "AUTH_a")]

    witnessed(redis_server.url, monkeypatch, Owner("p"), tell)


def test_a_real_service_is_called_for_a_static_policy_and_when_it_is_deleted(redis_server):
    asked = []

    async def serve(reader, writer):
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        length = int(head.lower().partition("content-length: ")[2].partition("\r")[0])
        asked.append((head.split()[1], json.loads(await reader.readexactly(length))))
        writer.write(b"HTTP/1.1 204 x\r\nContent-Length: 0\r\n\r\n")
        await writer.drain()
        writer.close()

    async def test():
        story = HostScenario(redis_server.url)
        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        async with story.host(activation_hosts="127.0.0.1") as host:
            await host.synced.wait()
            entry = Activation("compression", f"{url}/on/{{target}}", f"{url}/off/{{target}}").entry()
            await story.store.commit(Draft("admin", entries=(entry,)))
            put = assignment("p1.0", "AUTH_a", "compression", params={"level": 3})
            await story.store.commit(Draft("admin", puts=(put,), policies=(policy("p1"),)))

            async def called(path):
                async def there():
                    return asked and asked[-1][0] == path

                await wait_until(there)

            await called("/on/AUTH_a")
            await story.store.commit(Draft("admin", policy_drops=("p1",)))
            await called("/off/AUTH_a")
            # At least once: the new read and the stream may contain the same change.
            body = {"params": {"level": 3}, "place": "proxy"}
            once = [one for one, before in zip(asked, [None, *asked], strict=False) if one != before]
            assert once == [("/on/AUTH_a", body), ("/off/AUTH_a", body)]
        server.close()
        await server.wait_closed()
        await story.store.close()

    run_scenario(test(), 40)


def test_changes_during_a_gap_of_the_stream_are_called(redis_server, monkeypatch):
    async def tell(change_observer, called, now, story):
        await story.store.commit(Draft("admin", puts=(assignment("p.0", "AUTH_a"), assignment("p.1", "AUTH_b"))))
        await change_observer.reread("h1")
        assert sorted(called.since()) == [("on", "p.0", "AUTH_a"), ("on", "p.1", "AUTH_b")]
        await story.store.commit(Draft("admin", drops=("p.0",)))
        await change_observer.reread("h1")
        assert called.since() == [("off", "p.0", "AUTH_a")]
        await story.store.commit(Draft("admin", drops=("p.1",)))
        await change_observer.reread("h2")  # another history: no change was missed
        assert called.since() == []

    witnessed(redis_server.url, monkeypatch, Owner("p"), tell)


def test_a_host_that_takes_over_makes_the_calls_to_services_that_were_not_accepted(redis_server, monkeypatch):
    def state(name, done=True, **more):
        return ServiceState(name, name.partition(".")[0], "scan", "AUTH_a", "done" if done else "failed", **more)

    async def tell(change_observer, called, now, story):
        called.activations.replace([Activation("scan", "http://s/on", "http://s/off", service=True).entry()])
        in_force = [assignment(f"{name}.0", "AUTH_a", "scan", SERVICE) for name in ("done", "failed", "missing")]
        changed = assignment("changed.0", "AUTH_a", "scan", SERVICE, params={"depth": 2})
        theirs = assignment("theirs.0", "AUTH_a", "scan", SERVICE)
        await story.store.commit(Draft("t", puts=(*in_force, changed, theirs)))
        changed_since = state("changed.0", params={"depth": 1})
        unregistered = ServiceState("lost.0", "lost", "retired", "AUTH_a", "done")
        states = [state("done.0"), state("failed.0", done=False), changed_since, state("gone.0"), unregistered]
        await story.store.write_service_states({one.assignment: one for one in states})
        await change_observer.reread("")
        called.since()
        names = ("done", "failed", "missing", "changed", "gone", "lost")
        change_observer.slots_gained({slot_of(name) for name in names})
        await change_observer.reconcile()
        assert sorted(called.since()) == [
            ("off", "gone.0", "AUTH_a"),
            ("on", "changed.0", "AUTH_a"),
            ("on", "failed.0", "AUTH_a"),
            ("on", "missing.0", "AUTH_a"),
        ]
        assert called.activations.states.forgotten == ["lost.0"]
        await change_observer.reconcile()
        assert called.since() == []

    witnessed(redis_server.url, monkeypatch, Owner("done", "failed", "missing", "changed", "gone"), tell)
