"""Global controllers on an actor host, with a real Redis and real processes; the test makes the windows."""

import asyncio
import logging
import os

import pytest
from tests.support.actors.controllers import BUSY_CODE, Uploads, alive, code_of, run
from tests.support.actors.host import HostScenario, run_scenario, wait_until

from sluice_actors.controllers import rollout
from sluice_core.messages.uploads import METRIC_CODE, Upload
from sluice_core.store.records import Draft

ID = "controller:busy."


@pytest.fixture
def uploads(redis_server, tmp_path):
    return Uploads(HostScenario(redis_server.url), tmp_path / "code")


def cpu_time(pid):
    """Seconds of CPU time of the process."""
    with open(f"/proc/{pid}/stat") as stat:
        return sum(map(int, stat.read().rpartition(")")[2].split()[11:13])) / os.sysconf("SC_CLK_TCK")


def test_a_controller_sets_changes_and_takes_back_assignments(uploads):
    async def test(host):
        await uploads.feed(host, a=1, b=2)
        await uploads.state(host, "running")
        assert await uploads.levels() == {}
        await uploads.feed(host, a=8, b=1)
        await uploads.has(a=8)
        ((name, found),) = (await uploads.story.assignments()).items()
        assert name.startswith(ID)
        assert len(name.removeprefix(ID)) == 12
        assert (found.policy, found.keyword, found.place, found.stage, found.created) == (
            "controller:busy", "compression", "proxy", 300, 7,
        )  # fmt: skip
        await uploads.feed(host, a=9, b=5)
        await uploads.has(a=9, b=5)
        assert name in await uploads.story.assignments()
        await uploads.feed(host, b=5)
        await uploads.has(b=5)

        async def written():
            return (await uploads.state(host, "running"))["assignments"] == 1

        await wait_until(written)
        said = await uploads.state(host, "running")
        assert (said["reason"], said["revision"]) == ("", 1)
        assert said["last_run"] > 0
        assert alive(said["pid"])

    run(uploads, test)


def test_an_answer_that_is_the_same_writes_nothing(uploads):
    async def test(host):
        await uploads.feed(host, a=8)
        await uploads.has(a=8)
        head = await uploads.story.store.head()
        for _ in range(2):
            before = (await uploads.report(host))["last_run"]
            await uploads.feed(host, a=8)

            async def once_more(before=before):
                return (await uploads.report(host))["last_run"] > before

            await wait_until(once_more)
        assert await uploads.story.store.head() == head

    run(uploads, test)


def test_a_stop_takes_back_what_it_set_and_nothing_comes_again(uploads):
    async def test(host):
        await uploads.feed(host, a=8)
        await uploads.has(a=8)
        pid = (await uploads.report(host))["pid"]
        stopped = Upload(**{**uploads.upload.to_data(), "revisions": (), "running": False})
        await uploads.story.store.commit(Draft("admin", uploads=(stopped,), policy_drops=("controller:busy",)))

        async def gone():
            return not await uploads.report(host)

        await wait_until(gone)
        assert not alive(pid)
        assert await uploads.levels() == {}
        assert "PUTS_SEC" not in host.router.aggregators.report()

    run(uploads, test)


def test_a_controller_stopped_and_started_at_once_sets_everything_again(uploads):
    async def test(host):
        await uploads.feed(host, a=8)
        await uploads.has(a=8)
        stopped = Upload(**{**uploads.upload.to_data(), "revisions": (), "running": False})
        await uploads.story.store.commit(Draft("admin", uploads=(stopped,), policy_drops=("controller:busy",)))
        await uploads.story.store.commit(Draft("admin", uploads=(uploads.upload,)))
        feeding = asyncio.create_task(uploads.keep_feeding(host, a=8))
        try:
            await uploads.has(a=8)
        finally:
            feeding.cancel()

    run(uploads, test)


def test_a_controller_started_later_and_removed(uploads):
    async def test(host):
        await host.synced.wait()
        assert await uploads.report(host) == {}
        await uploads.put(code_of(BUSY_CODE))
        await uploads.feed(host, a=8)
        await uploads.has(a=8)
        gone = Draft("admin", upload_drops=("controller/busy",), policy_drops=("controller:busy",))
        await uploads.story.store.commit(gone)
        await uploads.has()

        async def ended():
            return not await uploads.report(host)

        await wait_until(ended)

    run(uploads, test, code="")


FAILURES = {
    "an exception": ("if 5 in values: raise ValueError('five')", "line 8: ValueError: five"),
    "the end of the process": ("if 5 in values: __import__('os')._exit(3)", "status 3"),
    "a signal": ("if 5 in values: __import__('os').kill(__import__('os').getpid(), 11)", "SIGSEGV"),
    "an unknown filter": ("if 5 in values: yield Assign('AUTH_x', 'compresion')", "did you mean `compression`"),
}


@pytest.mark.parametrize("failure", FAILURES)
def test_assignments_stay_through(uploads, failure):
    line, reason = FAILURES[failure]
    body = f"values = observation.values('PUTS_SEC').values()\n{line}\n{BUSY_CODE}"

    async def test(host):
        await uploads.feed(host, a=8)
        await uploads.has(a=8)
        await uploads.feed(host, a=5)
        await uploads.state(host, "failed", reason)
        assert await uploads.levels() == {"AUTH_a": 8}
        feeding = asyncio.create_task(uploads.keep_feeding(host, a=9))
        try:
            await uploads.has(a=9)
            said = await uploads.state(host, "running")
        finally:
            feeding.cancel()
        assert (said["reason"], said["assignments"]) == ("", 1)

    run(uploads, test, body)


def test_a_controller_that_hangs_is_killed_and_started_again(uploads, monkeypatch):
    monkeypatch.setattr(rollout, "TIME_LIMIT", 0.5)
    body = f"while 5 in observation.values('PUTS_SEC').values(): pass\n{BUSY_CODE}"

    async def test(host):
        await uploads.feed(host, a=8)
        await uploads.has(a=8)
        pid = (await uploads.report(host))["pid"]
        await uploads.feed(host, a=5)
        await uploads.state(host, "failed", "did not answer within 0.5 seconds")
        assert not alive(pid)
        assert await uploads.levels() == {"AUTH_a": 8}
        feeding = asyncio.create_task(uploads.keep_feeding(host, a=9))
        try:
            await uploads.has(a=9)
        finally:
            feeding.cancel()
        assert (await uploads.report(host))["pid"] != pid

    run(uploads, test, body)


def test_without_any_window_nothing_is_taken_back(uploads):
    async def test(host):
        await uploads.feed(host, a=8)
        await uploads.has(a=8)
        uploads.story.clock.now += 60
        await uploads.state(host, "waiting", "no window of PUTS_SEC")
        assert await uploads.levels() == {"AUTH_a": 8}
        uploads.story.window += 60
        await uploads.feed(host)
        await uploads.has()

    run(uploads, test)


def test_a_restarted_host_goes_on_without_taking_anything_back(uploads):
    async def test():
        await uploads.put(code_of(BUSY_CODE))
        async with uploads.story.host(code_dir=str(uploads.folder)) as host:
            await uploads.feed(host, a=8)
            await uploads.has(a=8)
        head = await uploads.story.store.head()
        async with uploads.story.host(code_dir=str(uploads.folder)) as host:
            await uploads.feed(host, a=8)
            await uploads.state(host, "running")
            assert await uploads.story.store.head() == head
            await uploads.feed(host, b=8)
            await uploads.has(b=8)
        await uploads.story.store.close()

    run_scenario(test(), 60)


def test_output_of_a_controller_is_logged_within_a_limit(uploads, caplog):
    body = "print('hello', *range(3))\nfor n in range(200): print('line', n)\nprint('all', flush=True)\n" + BUSY_CODE

    async def test(host):
        with caplog.at_level(logging.INFO, "sluice_actors.controllers.controller_process"):
            await uploads.feed(host, a=8)
            await uploads.has(a=8)

            async def warned():
                return "more than 60 lines" in caplog.text

            await wait_until(warned)
        assert "controller `busy` prints: hello 0 1 2" in caplog.text
        assert caplog.text.count("prints: line") < 60

    run(uploads, test, body)


def test_a_controller_sees_nodes_and_no_secret_of_the_host(uploads, monkeypatch):
    monkeypatch.setenv("SLUICE_SECRET", "do not tell")
    body = """\
import os, sys
assert "SLUICE_SECRET" not in os.environ
assert sys.stdin.read() == ""
assert observation.nodes == {}, observation.nodes
assert observation.at == 1001, observation.at
assert observation.values("PUTS_SEC", "cluster") == {"": 8}
yield Assign("", "noop")
yield Assign("AUTH_a/c/o/p", "noop")
yield Assign("AUTH_a/c", "compression", {"engine": "lz4"}, "storage_node")
yield Assign("AUTH_a/c", "caching")
"""

    async def test(host):
        await uploads.feed(host, a=8)
        said = await uploads.state(host, "running")
        assert said["assignments"] == 4
        found = {
            (one.target.level, one.target.name, one.keyword, one.place)
            for one in await uploads.story.store.assignments()
        }
        assert found == {
            ("cluster", "", "noop", "proxy"),
            ("object", "AUTH_a/c/o/p", "noop", "proxy"),
            ("container", "AUTH_a/c", "compression", "storage_node"),
            ("container", "AUTH_a/c", "caching", "proxy"),
        }

    run(uploads, test, body)


def test_an_uploaded_filter_can_be_set_as_soon_as_it_is_there(uploads):
    async def test(host):
        await uploads.feed(host, a=8)
        await uploads.state(host, "failed", "unknown action `rot13`")
        info = {"parameters": [{"name": "by", "type": "int", "minimum": 1}], "stage": 250}
        word = Upload("rot13", "native", "python", "Rot", "0" * 64, 5, reverse=True, info=info)
        await uploads.story.store.commit(Draft("admin", uploads=(word,)))
        feeding = asyncio.create_task(uploads.keep_feeding(host, a=9))
        try:
            await uploads.state(host, "running")
        finally:
            feeding.cancel()
        (found,) = await uploads.story.store.assignments()
        assert (found.keyword, found.params, found.stage) == ("rot13", {"by": 13}, 250)

    run(uploads, test, "yield Assign('AUTH_a', 'rot13', {'by': 13})")


def test_the_process_ends_with_its_host_though_it_computes(uploads):
    async def test(host):
        await uploads.feed(host, a=8)
        await uploads.has(a=8)
        pid = (await uploads.report(host))["pid"]
        await uploads.feed(host, a=5)

        async def busy():
            return cpu_time(pid) > 0.2 + before

        before = cpu_time(pid)
        await wait_until(busy)
        controlled.append(pid)

    controlled = []
    run(uploads, test, f"while 5 in observation.values('PUTS_SEC').values(): pass\n{BUSY_CODE}")
    assert controlled
    assert not alive(*controlled)


def test_the_period_of_an_uploaded_metric_says_how_long_its_first_window_is_waited_for(uploads):
    async def test(host):
        slow = Upload(
            "SLOW", "native", "python", "", "0" * 64, 5, kind=METRIC_CODE, info={"period": 600.0, "unit": "count"}
        )
        await uploads.story.store.commit(Draft("admin", uploads=(slow,)))
        await uploads.put(code_of(BUSY_CODE), metrics=["PUTS_SEC", "SLOW"])
        await uploads.feed(host, a=8)
        await uploads.state(host, "starting", "waiting for SLOW")
        assert await uploads.levels() == {}

    run(uploads, test, code="")
