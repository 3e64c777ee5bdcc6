"""Native code on a node: tried before it is announced, kept when the newest revision fails, and reported."""

import asyncio
import contextlib
import hashlib
import logging
from dataclasses import replace

import pytest

from sluice_agent.agent import Agent
from sluice_agent.code import validation
from sluice_agent.code.fetcher import CodeFetcher
from sluice_agent.settings import Settings
from sluice_code.code_store import CodeStore
from sluice_code.native_trial import Interpreter, Trial, Verdict
from sluice_code.swift_code_store import SwiftCodeStoreSettings
from sluice_core.errors import PeerError
from sluice_core.messages.uploads import Upload
from sluice_core.options import OptionError
from sluice_core.snapshot.reader import SnapshotReader
from sluice_core.store.records import Draft
from sluice_core.store.store import AsyncStore, Store
from sluice_core.testing import FakeSwiftCodeStore
from sluice_filters.basic.noop import Noop
from sluice_sandbox.hosting import OPTIONS, InstalledFilters

LIMIT = 60
REVERSIBLE = {"reversible": True}
ONE, TWO, THREE = b"one", b"two", b"three"


def digest(code):
    return hashlib.sha256(code).hexdigest()


def uploaded(code=ONE, keyword="shout", **more):
    given = {"info": REVERSIBLE, **more}
    return Upload(keyword, "native", "python", "Shout", digest(code), len(code), **given)


def succeeded(old, code, **more):
    revisions = (old.current, *old.revisions)
    return replace(old, sha256=digest(code), size=len(code), revision=old.revision + 1, revisions=revisions, **more)


class Node:
    """A fetcher over a list of uploads, with trials whose results are in ``verdicts``."""

    def __init__(self, folder, *codes):
        self.store = CodeStore(folder)
        self.shelf = FakeSwiftCodeStore(*codes)
        self.uploads = []
        self.verdicts = {}
        self.trials = []
        self.told = []
        self.restart()

    def restart(self):
        self.fetcher = CodeFetcher(
            self.shelf, self.store, lambda: self.uploads, lambda: self.told.append(True), Interpreter(), self.judge
        )

    def judge(self, trial, interpreter):
        self.trials.append((trial.sha256, tuple(one.sha256 for one in trial.earlier)))
        verdict = self.verdicts.get(trial.sha256, "")
        if isinstance(verdict, Exception):
            raise verdict
        return Verdict(verdict)

    def update(self, *uploads):
        self.uploads = list(uploads)
        asyncio.run(self.fetcher.fetch())
        return dict(self.fetcher.usable_revisions)

    def proven(self, code):
        return self.store.is_proven(digest(code), "filter", "Shout")


@pytest.fixture
def node(tmp_path):
    return Node(tmp_path / "code", ONE, TWO, THREE)


def test_native_code_is_usable_once_validated_here(node):
    assert node.update(uploaded()) == {"shout": 1}
    assert node.proven(ONE)
    assert node.update(uploaded()) == {"shout": 1}
    assert node.trials == [(digest(ONE), ())]
    assert node.told == [True]
    assert node.fetcher.problems == {}


def test_the_newest_valid_revision_is_used_and_the_problem_reported(node):
    first = uploaded()
    second = succeeded(first, TWO)
    third = succeeded(second, THREE)
    node.verdicts = {digest(TWO): "TWO is broken", digest(THREE): "THREE is broken"}
    assert node.update(third) == {"shout": 1}
    assert node.fetcher.problems == {"upload/shout": "revision 3: THREE is broken"}
    assert [sha256 for sha256, _ in node.trials] == [digest(THREE), digest(TWO), digest(ONE)]
    assert (node.proven(ONE), node.proven(TWO), node.proven(THREE)) == (True, False, False)
    node.update(third)
    assert len(node.trials) == 3


def test_a_trial_has_what_the_earlier_revisions_stored(node):
    second = succeeded(uploaded(), TWO)
    third = succeeded(second, THREE)
    node.update(third)
    assert node.trials == [(digest(THREE), (digest(TWO), digest(ONE)))]
    back = succeeded(third, ONE)
    node.update(back)
    assert node.trials[1:] == [(digest(ONE), (digest(THREE), digest(TWO)))]
    assert node.fetcher.usable_revisions == {"shout": 4}


def test_earlier_irreversible_revisions_are_not_fetched(node):
    second = succeeded(uploaded(info={}), TWO)
    node.update(second)
    assert node.trials == [(digest(TWO), ())]
    assert node.shelf.asked == [digest(TWO)]


def test_a_lost_earlier_revision_does_not_stop_a_newer_one(node, caplog):
    del node.shelf.codes[digest(ONE)]
    assert node.update(succeeded(uploaded(), TWO)) == {"shout": 2}
    assert node.trials == [(digest(TWO), ())]
    assert "revision 1 of filter `shout` is lost" in caplog.text


@pytest.mark.parametrize("where", ["shelf", "trial"])
def test_failures_that_are_not_the_codes_fault_are_retried(node, where):
    away = PeerError("it is away")
    if where == "shelf":
        node.shelf.codes[digest(TWO)] = away
    else:
        node.verdicts[digest(TWO)] = away
    second = succeeded(uploaded(), TWO)
    assert node.update(second) == {"shout": 1}
    assert node.fetcher.problems == {"upload/shout": "revision 2: it is away"}
    node.shelf.codes[digest(TWO)] = TWO
    node.verdicts = {}
    assert node.update(second) == {"shout": 2}
    assert node.fetcher.problems == {}


def test_a_restarted_node_keeps_its_marks_and_validates_everything_again(node):
    second = succeeded(uploaded(), TWO)
    node.update(second)
    node.restart()
    node.verdicts[digest(TWO)] = PeerError("no child")
    assert node.update(second) == {"shout": 2}
    assert node.fetcher.problems == {"upload/shout": "revision 2: no child"}
    node.verdicts[digest(TWO)] = "it does not work with this Swift"
    assert node.update(second) == {"shout": 1}
    assert not node.proven(TWO)


def test_a_removed_mark_is_restored(node):
    node.update(uploaded())
    node.store.unmark_proven(digest(ONE), "filter", "Shout")
    assert node.update(uploaded()) == {"shout": 1}
    assert node.proven(ONE)
    assert len(node.trials) == 1


def test_damaged_code_is_fetched_anew(node):
    node.update(uploaded())
    path = node.store.path(digest(ONE))
    path.unlink()
    path.write_bytes(b"something else")
    node.restart()
    node.update(uploaded())
    assert "SHA-256" in node.fetcher.problems["upload/shout"]
    assert node.update(uploaded()) == {"shout": 1}
    assert node.fetcher.problems == {}
    assert node.store.read(digest(ONE)) == ONE


def test_metrics_are_validated_and_controllers_ignored(node):
    metric = uploaded(keyword="SHOUTS_SEC", kind="metric", info={}, running=False)
    controller = uploaded(TWO, keyword="shouting", kind="controller", info={})
    assert node.update(metric, controller) == {"metric/SHOUTS_SEC": 1}
    assert node.shelf.asked == [digest(ONE)]
    assert node.store.is_proven(digest(ONE), "metric", "Shout")


def test_isolated_code_is_usable_when_its_files_are_here(node):
    isolated = replace(uploaded(), environment="wasm")
    node.shelf.codes[digest(TWO)] = PeerError("swift is away")
    second = succeeded(isolated, TWO)
    assert node.update(second) == {}
    assert node.update(isolated) == {"shout": 1}
    assert node.update(second) == {"shout": 1}
    assert "swift is away" in node.fetcher.problems["upload/shout"]
    node.shelf.codes[digest(TWO)] = TWO
    assert node.update(second) == {"shout": 2}
    assert node.trials == []


def test_a_problem_names_its_revision(node):
    node.verdicts[digest(ONE)] = "ONE is broken"
    first = uploaded()
    node.update(first)
    assert "upload/shout" in node.fetcher.problems
    node.uploads = [succeeded(first, TWO)]
    assert node.fetcher.problems == {}


def test_another_upload_of_the_same_name_is_validated_itself(node):
    assert node.update(uploaded()) == {"shout": 1}
    node.uploads = [uploaded(TWO)]
    assert node.fetcher.usable_revisions == {}
    assert node.update(uploaded(TWO)) == {"shout": 1}


def test_uploads_that_cannot_be_read_change_nothing(node, caplog):
    def away():
        raise PeerError("the snapshot is damaged")

    node.update(uploaded())
    node.fetcher.uploads = away
    asyncio.run(node.fetcher.fetch())
    assert "uploads cannot be read: the snapshot is damaged" in caplog.text
    node.fetcher.uploads = lambda: node.uploads
    assert node.fetcher.usable_revisions == {"shout": 1}


def test_removed_uploads_are_forgotten(node):
    node.verdicts[digest(ONE)] = "ONE is broken"
    node.update(uploaded(), uploaded(TWO, "whisper"))
    assert node.update() == {}
    assert node.fetcher.problems == {}


def test_retry_pauses_grow_and_new_uploads_do_not_wait(node):
    node.shelf.codes[digest(ONE)] = PeerError("swift is away")
    node.update(uploaded())
    pauses = [node.fetcher._states["shout"].pause]
    for _ in range(7):
        node.update(uploaded())
        pauses.append(node.fetcher._states["shout"].pause)
    assert pauses == [1, 2, 4, 8, 16, 32, 60, 60]
    node.shelf.codes[digest(ONE)] = ONE
    node.uploads = [uploaded(), uploaded(TWO, "whisper")]
    asyncio.run(node.fetcher._update_due(0.0))
    assert node.fetcher.usable_revisions == {"whisper": 1}


# -- the interpreter


def test_an_interpreter_that_cannot_run_trials_gives_no_verdict(tmp_path):
    python = tmp_path / "python"
    python.write_text("#!/bin/sh\necho 'ModuleNotFoundError: no sluice' >&2\nexit 1\n")
    python.chmod(0o755)
    trial = Trial("filter", str(tmp_path), digest(ONE))
    with pytest.raises(
        PeerError, match=r"cannot import `sluice_filters\.trial\.trial`: ModuleNotFoundError: no sluice"
    ):
        validation.validate_code(trial, Interpreter(str(python)))
    with pytest.raises(PeerError, match="cannot start"):
        validation.validate_code(trial, Interpreter(str(tmp_path / "nothing")))
    assert "cannot be read" in validation.validate_code(trial, Interpreter()).reason


def test_the_interpreter_runs_as_swifts_user(monkeypatch):
    assert validation.swift_interpreter("/py", "", "") == Interpreter("/py")
    assert validation.swift_interpreter("/py", "daemon", "") == Interpreter("/py", "daemon", "daemon")
    assert validation.swift_interpreter("", "nobody", "daemon") == Interpreter("", "nobody", "daemon")
    with pytest.raises(OptionError, match="`swift_user`"):
        validation.swift_interpreter("", "nobody of this name", "")
    daemon = validation.pwd.getpwnam("daemon")
    monkeypatch.setattr(validation.os, "geteuid", lambda: daemon.pw_uid)
    monkeypatch.setattr(validation.os, "getegid", lambda: daemon.pw_gid)
    assert validation.swift_interpreter("/py", "daemon", "") == Interpreter("/py")


# -- an agent


SHOUT = b"""
from sluice_core.describe import FILTER, ActionInfo
from sluice_filters.api import Filter, Stream

class Shout(Filter):
    info = ActionInfo("shout", FILTER, "upper case", on_put=False, on_get=True, changes_content=True)

    def reader(self, hint):
        return Upper()

class Upper(Stream):
    def feed(self, data):
        return data.upper()
"""
BROKEN = SHOUT.replace(b"data.upper()", b"data.uper()")
INFO = {"on_put": False, "on_get": True, "changes_content": True}


async def reported(url, holds):
    """The first report of the node for which ``holds`` is true; each report is announced, so no test polls."""
    store = AsyncStore(url)
    async with store.client.pubsub(ignore_subscribe_messages=True) as news:
        await news.subscribe(store.keys.acks)
        await news.get_message(timeout=5)
        while True:
            for report in await store.nodes():
                if holds(report):
                    await store.close()
                    return report
            await news.get_message(timeout=5)


def settings_in(folder, redis_url):
    """Settings of an agent with a store for code."""
    return Settings(
        "n1",
        redis_url,
        str(folder / "snapshot"),
        report_interval=0.5,
        code_dir=str(folder / "code"),
        sandbox_dir=str(folder / "sandbox"),
        code_store=SwiftCodeStoreSettings("http://127.0.0.1:1", "u", "k", "c"),
    )


def test_an_agent_rolls_a_filter_out_refuses_a_broken_revision_and_workers_follow(redis_server, tmp_path, monkeypatch):
    shelf = FakeSwiftCodeStore(SHOUT, BROKEN)
    monkeypatch.setattr("sluice_agent.agent.SwiftCodeStore", lambda settings: shelf)
    settings = settings_in(tmp_path, redis_server.url)
    first = uploaded(SHOUT, info=INFO)
    options = {option.name: option.default for option in OPTIONS} | {"code_dir": settings.code_dir}
    installed = InstalledFilters({"noop": Noop}, options, logging.getLogger("worker"))
    reader = SnapshotReader(settings.snapshot_dir)

    def look():
        reader.refresh()
        return installed.update(reader.uploads)

    async def story():
        store = Store(redis_server.url)
        store.client.flushall()
        store.commit(Draft("test", uploads=(first,)))
        task = asyncio.create_task(Agent(settings).run())
        try:
            report = await reported(redis_server.url, lambda one: one.code == {"shout": 1} and one.sandbox)
            assert report.refused == {}
            assert report.sandbox["process"].startswith("no sandbox supervisor at")
            assert look()
            kept = installed.filters["shout"]
            assert kept().reader(None).feed(b"hello") == b"HELLO"
            second = succeeded(first, BROKEN)
            store.commit(Draft("test", uploads=(second,)))
            report = await reported(redis_server.url, lambda one: one.refused)
            assert report.code == {"shout": 1}
            assert "revision 2: filter `shout`: reading" in report.refused["upload/shout"]
            assert "no attribute 'uper'" in report.refused["upload/shout"]
            look()
            assert installed.filters["shout"] is kept
            third = succeeded(second, SHOUT)
            store.commit(Draft("test", uploads=(third,)))
            report = await reported(redis_server.url, lambda one: one.code == {"shout": 3})
            assert report.refused == {}
            assert look()
            assert installed.filters["shout"].info.version == 3
            store.commit(Draft("test", upload_drops=("shout",)))
            await reported(redis_server.url, lambda one: one.epoch == 4 and one.code == {})
            assert look()
            assert set(installed.filters) == {"noop"}
        finally:
            reader.close()
            store.close()
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task

    async def limited():
        async with asyncio.timeout(LIMIT):
            await story()

    asyncio.run(limited())
