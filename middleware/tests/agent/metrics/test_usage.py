"""The agent and its usage reader, replaced by a script."""

import asyncio
import dataclasses
import gc

import pytest

from sluice_agent.metrics import usage
from sluice_agent.settings import OPTIONS, Settings
from sluice_code.native_trial import Interpreter
from sluice_core.messages.nodes import MetricBatch
from sluice_core.metrics.usage_metrics import encode_frame
from sluice_core.options import OptionError, read_options
from sluice_rewrites.accounts import AccountsFound

LIMIT = 20
STORED = MetricBatch("n.1", "STORED", 60, 1, {"tenant": {"AUTH_a": 5.0, "AUTH_b": 0.0}, "container": {"AUTH_c/c": 1.0}})
SCRIPT = """\
#!/bin/sh
echo "$0 $@" >> {log}
cat {log}.batch
printf '\\000\\007\\000\\000\\000\\003OBJECTStwo'
{then}
"""


class Bus:
    dropped = 0

    def __init__(self):
        self.sent = []
        self.news = asyncio.Event()

    def publish(self, routing_key, body):
        self.sent.append((routing_key, body))
        self.news.set()

    async def until(self, count):
        async with asyncio.timeout(LIMIT):
            while len(self.sent) < count:
                self.news.clear()
                await self.news.wait()


class NoAccounts:
    """Accounts of a script, which has none."""

    def __init__(self):
        self.answers = asyncio.Queue()
        self.readers = []

    async def add(self, batch):
        assert batch.metric == "STORED"

    def reader_started(self, ask):
        self.readers.append(ask)

    def reader_ended(self):
        self.readers.append(None)

    async def answer(self, found):
        await self.answers.put(found)


def settings(**more):
    values = read_options(OPTIONS, {"storage_confs": "/a.conf, /b.conf", "node": "n.1", **more}, "test")
    return Settings.from_options(values)


def python(folder, then):
    (folder / "log.batch").write_bytes(encode_frame("STORED", STORED.encode()))
    script = folder / "python"
    script.write_text(SCRIPT.format(log=folder / "log", then=then))
    script.chmod(0o755)
    return Interpreter(str(script))


def run(story):
    asyncio.run(asyncio.wait_for(story, LIMIT))


def test_batches_are_passed_on_as_they_are_and_the_reader_ends_with_the_agent(tmp_path):
    async def story():
        bus = Bus()
        swift = python(tmp_path, "exec cat")
        task = asyncio.create_task(usage.serve(settings(), swift, bus, NoAccounts()))
        await bus.until(2)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert bus.sent == [("metric.STORED.n_1", STORED.encode()), ("metric.OBJECTS.n_1", b"two")]
        (started,) = (tmp_path / "log").read_text().splitlines()
        assert started.endswith("-I -m sluice_middleware.usage n.1 60 /a.conf /b.conf")

    run(story())


def test_a_byte_asks_the_reader_and_its_answer_is_no_batch(tmp_path):
    found = AccountsFound(("AUTH_a",), ("10.0.0.1:6202/sdb",), (), ("no",))

    async def story():
        bus, accounts = Bus(), NoAccounts()
        (tmp_path / "log.answer").write_bytes(encode_frame("accounts", found.encode()))
        swift = python(tmp_path, f"head -c 1 > {tmp_path}/asked; cat {tmp_path}/log.answer; exec sleep 60")
        task = asyncio.create_task(usage.serve(settings(), swift, bus, accounts))
        await bus.until(2)
        accounts.readers[0]()
        assert await accounts.answers.get() == found
        assert (tmp_path / "asked").read_bytes() == b"."
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert (len(bus.sent), accounts.readers[1:]) == (2, [None])

    run(story())


@pytest.mark.parametrize("then", ["exit 3", "printf '\\000\\000\\000\\000\\000\\000'; exec sleep 60"])
def test_a_reader_that_ends_or_writes_nonsense_is_started_again(tmp_path, then):
    async def story():
        bus = Bus()
        task = asyncio.create_task(usage.serve(settings(), python(tmp_path, then), bus, NoAccounts(), again=0.01))
        await bus.until(6)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert len((tmp_path / "log").read_text().splitlines()) >= 3

    run(story())


@pytest.mark.parametrize("turns", range(8))
def test_an_agent_that_ends_while_a_reader_is_ended_leaves_nothing_behind(tmp_path, turns):
    async def story():
        bus = Bus()
        swift = python(tmp_path, "printf '\\000\\000\\000\\000\\000\\000'; exec sleep 60")
        task = asyncio.create_task(usage.serve(settings(), swift, bus, NoAccounts()))
        await bus.until(2)
        for _ in range(turns):
            await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    run(story())
    gc.collect()  # unclosed resources are reported when they are collected


def test_an_interpreter_that_is_not_there_is_tried_again(tmp_path, caplog):
    async def story():
        task = asyncio.create_task(
            usage.serve(settings(), Interpreter(str(tmp_path / "none")), Bus(), NoAccounts(), again=0.01)
        )
        while len(caplog.records) < 2:
            await asyncio.sleep(0.01)
        task.cancel()

    run(story())
    assert "the usage reader failed" in caplog.text


def test_the_period_is_a_second_at_least():
    assert settings(usage_period="5").usage_period == 5
    assert dataclasses.asdict(settings())["storage_confs"] == ("/a.conf", "/b.conf")
    with pytest.raises(OptionError, match="option `usage_period` is `0`"):
        settings(usage_period="0")
