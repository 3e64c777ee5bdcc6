"""Services that are called when an action is set and reverted."""

import asyncio
import json
import re

import pytest
from tests.support.actors.host import HostScenario, wait_until
from tests.support.actors.host import run_scenario as run_host_scenario

from sluice_actors.activations.calls import Activations
from sluice_core.connections.url_allowlist import UrlAllowlist
from sluice_core.describe import SERVICE
from sluice_core.messages.policies import Change
from sluice_core.messages.registry import Activation, Term
from sluice_core.process.logs import TextFormatter
from sluice_core.store.records import Draft
from sluice_core.testing import assignment


class Service:
    """An HTTP server on loopback that records its requests; ``status`` is its answer."""

    def __init__(self):
        self.asked = []
        self.heads = []
        self.status = 204
        self.open = asyncio.Event()
        self.open.set()
        self.news = asyncio.Event()

    async def __aenter__(self):
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.url = f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"
        return self

    async def __aexit__(self, *_):
        self._server.close()
        await self._server.wait_closed()

    async def _serve(self, reader, writer):
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        length = int(
            next(line for line in head.split("\r\n") if line.lower().startswith("content-length")).split(":")[1]
        )
        body = json.loads(await reader.readexactly(length))
        self.asked.append((head.split()[1], body))
        self.heads.append(head)
        self.news.set()
        await self.open.wait()
        writer.write(b"HTTP/1.1 %d x\r\nContent-Length: 0\r\n\r\n" % self.status)
        await writer.drain()
        writer.close()

    async def calls(self, count):
        async with asyncio.timeout(10):
            while len(self.asked) < count:
                self.news.clear()
                await self.news.wait()
        return self.asked


class KeptStates(dict):
    """Assignment → the last state of its call; ``seen`` are all states."""

    def __init__(self):
        self.seen = []

    def keep(self, assignment, state):
        self[assignment] = state
        self.seen.append("gone" if state is None else state.state)


def run_scenario(story, allowlist="127.0.0.1", owns=lambda name: True):
    async def played():
        async with Service() as service:
            activations = Activations(UrlAllowlist.from_option(allowlist), KeptStates(), owns, first_pause=0.01)
            on, off = f"{service.url}/on/{{target}}", f"{service.url}/off/{{target}}"
            activations.replace(
                [Activation("compression", on, off).entry(), Activation("scan", on, off, service=True).entry()]
            )
            running = asyncio.create_task(activations.run())
            try:
                await story(service, activations)
            finally:
                running.cancel()
                await asyncio.wait([running])

    asyncio.run(played())


def action(keyword="compression", **more):
    return assignment("p.0", "AUTH_a", keyword=keyword, params={"engine": "zstd"}, **more)


async def settled(activations, done):
    async with asyncio.timeout(10):
        while activations.counts.done + activations.counts.failed < done:
            await asyncio.sleep(0.01)


def test_a_service_is_called_when_its_filter_is_set_and_when_it_is_taken_back():
    async def story(service, activations):
        activations.committed([action(), action("noop")], [])
        await settled(activations, 1)
        activations.committed([], [action(member="AUTH_b")])
        await settled(activations, 2)
        body = {"params": {"engine": "zstd"}, "place": "proxy"}
        assert service.asked == [("/on/AUTH_a", body), ("/off/AUTH_b", body)]
        assert activations.report() == {"waiting": 0, "done": 2, "failed": 0, "dropped": 0}

    run_scenario(story)


def test_an_action_that_deletes_a_filter_calls_off_and_then_on():
    async def story(service, activations):
        activations.committed([action(verb="delete")], [])
        await settled(activations, 1)
        activations.committed([], [action(verb="delete")])
        await settled(activations, 2)
        assert [path for path, _ in service.asked] == ["/off/AUTH_a", "/on/AUTH_a"]

    run_scenario(story)


def test_outdated_calls_are_not_sent_and_calls_keep_their_order():
    async def story(service, activations):
        service.open.clear()
        activations.committed([action()], [])
        await service.calls(1)
        for _ in range(3):
            activations.committed([], [action()])
            activations.committed([action()], [])
        activations.committed([], [action()])
        service.open.set()
        await settled(activations, 2)
        assert [path for path, _ in service.asked] == ["/on/AUTH_a", "/off/AUTH_a"]

    run_scenario(story)


@pytest.mark.parametrize("allowlist", ["", "10.0.0.0/8"])
def test_a_host_that_is_not_on_the_allowlist_is_not_called(allowlist, caplog):
    async def story(service, activations):
        activations.committed([action()], [])
        await settled(activations, 1)
        assert service.asked == []
        assert activations.report()["failed"] == 1

    run_scenario(story, allowlist)
    assert "127.0.0.1" in caplog.text


def test_a_service_and_the_log_have_the_id_of_the_call(caplog):
    caplog.handler.setFormatter(TextFormatter("%(context)s %(message)s"))

    async def story(service, activations):
        service.status = 403
        activations.committed([action()], [])
        await settled(activations, 1)
        (request,) = re.findall("(?m)^X-Openstack-Request-Id: (req-[0-9a-f-]{36})\r$", service.heads[0])
        assert f" [{request}] activation for `{action().id}` failed" in caplog.text

    run_scenario(story)


def test_a_service_that_refuses_is_counted_and_logged(caplog):
    async def story(service, activations):
        service.status = 403
        activations.committed([action()], [])
        await settled(activations, 1)
        assert activations.report()["failed"] == 1

    run_scenario(story)
    assert "403" in caplog.text
    assert "p.0" in caplog.text


def test_registrations_are_followed():
    async def story(service, activations):
        url = f"{service.url}/noop"
        activations.apply(Change(1, "h", 0.0, entries=(Activation("noop", url).entry(), Term("T", ("a",)).entry())))
        activations.apply(Change(2, "h", 0.0, entry_drops=("activation/compression",)))
        activations.committed([action(), action("noop")], [])
        activations.committed([], [action("noop")])  # no call is registered for the undo
        await settled(activations, 1)
        assert [path for path, _ in service.asked] == ["/noop"]

    run_scenario(story)


# -- filters of third parties, which only these calls enforce


def test_what_the_service_of_a_third_party_answered_is_kept_until_the_filter_is_taken_back():
    async def story(service, activations):
        activations.committed([action("scan"), action()], [])
        await settled(activations, 2)
        assert activations.states.seen == ["waiting", "done"]
        state = activations.states["p.0"]
        assert (state.policy, state.keyword, state.target, state.params) == ("p", "scan", "AUTH_a", {"engine": "zstd"})
        activations.committed([], [action("scan")])
        await settled(activations, 3)
        assert activations.states.seen == ["waiting", "done", "waiting", "gone"]

    run_scenario(story)


def test_a_service_that_refuses_is_called_again_until_it_accepts():
    async def story(service, activations):
        service.status = 400
        activations.committed([action("scan")], [])
        await settled(activations, 2)
        assert activations.states["p.0"].reason == "the service answered 400"
        service.status = 204
        async with asyncio.timeout(10):
            while activations.states["p.0"].state != "done":
                await asyncio.sleep(0.01)
        assert activations.states["p.0"].attempts >= 3

    run_scenario(story)


def test_a_failed_call_that_is_out_of_date_is_not_made_again():
    async def story(service, activations):
        activations.first_pause = 0.2
        service.status = 400
        activations.committed([action("scan")], [])
        await settled(activations, 1)
        service.status = 204
        activations.committed([], [action("scan")])
        await settled(activations, 2)
        await asyncio.sleep(0.4)
        assert [path for path, _ in service.asked] == ["/on/AUTH_a", "/off/AUTH_a"]

    run_scenario(story)


def test_a_failed_call_of_a_policy_that_another_host_owns_now_is_not_made_again():
    async def story(service, activations):
        service.status = 400
        activations.committed([action("scan")], [])
        await settled(activations, 1)
        await asyncio.sleep(0.1)
        assert len(service.asked) == 1

    run_scenario(story, owns=lambda name: False)


def test_a_host_has_services_enforce_what_was_in_force_before_it_came(redis_server):
    async def play():
        story = HostScenario(redis_server.url)
        async with Service() as service:
            on, off = f"{service.url}/on/{{target}}", f"{service.url}/off/{{target}}"
            put = assignment("p.0", "AUTH_a", "scan", SERVICE)
            registered = Activation("scan", on, off, service=True).entry()
            await story.store.commit(Draft("t", entries=(registered,), puts=(put,)))
            async with story.host(activation_hosts="127.0.0.1"):

                async def states():
                    return {name: one.state for name, one in (await story.store.service_states()).items()}

                async def accepted():
                    return await states() == {"p.0": "done"}

                async def gone():
                    return not await states()

                await wait_until(accepted)
                await story.store.commit(Draft("t", drops=("p.0",)))
                await wait_until(gone)
            assert [path for path, _ in service.asked] == ["/on/AUTH_a", "/off/AUTH_a"]
        await story.store.close()

    run_host_scenario(play())
