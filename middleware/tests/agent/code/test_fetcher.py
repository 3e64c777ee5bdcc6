"""The code of registered filters is fetched to a node."""

import asyncio
import hashlib

import pytest

from sluice_agent.code.fetcher import CodeFetcher
from sluice_code.code_store import CodeStore
from sluice_code.native_trial import Verdict
from sluice_core.describe import NBDKIT
from sluice_core.errors import NotFound, PeerError
from sluice_core.messages.uploads import Upload
from sluice_core.testing import FakeSwiftCodeStore

CODE, EARLIER = b"code", b"earlier code"


def digest(code):
    return hashlib.sha256(code).hexdigest()


@pytest.fixture
def store(tmp_path):
    return CodeStore(tmp_path / "code")


def upload(**more):
    return Upload("shout", "wasm", "wasm", "", digest(CODE), len(CODE), **more)


def fetcher(shelf, store, *uploads):
    told = []
    made = CodeFetcher(shelf, store, lambda: uploads, lambda: told.append(True))
    return made, told


def test_missing_code_is_fetched_once_with_earlier_revisions(store):
    shelf = FakeSwiftCodeStore(CODE, EARLIER)
    made, told = fetcher(shelf, store, upload(earlier=(digest(EARLIER),)))
    asyncio.run(made.fetch())
    asyncio.run(made.fetch())
    assert (store.read(digest(CODE)), store.read(digest(EARLIER))) == (CODE, EARLIER)
    assert shelf.asked == [digest(CODE), digest(EARLIER)]
    assert told == [True]
    assert made.problems == {}


@pytest.mark.parametrize("fault", [PeerError("swift is away"), b"other code", NotFound("nothing")])
def test_code_that_cannot_be_fetched_is_a_problem_until_it_can(store, fault):
    shelf = FakeSwiftCodeStore(CODE)
    shelf.codes[digest(CODE)] = fault
    made, told = fetcher(shelf, store, upload())
    asyncio.run(made.fetch())
    asyncio.run(made.fetch())
    assert list(made.problems) == ["upload/shout"]
    assert not store.has(digest(CODE))
    assert told == [True]
    shelf.codes[digest(CODE)] = CODE
    asyncio.run(made.fetch())
    assert made.problems == {}
    assert store.read(digest(CODE)) == CODE


def test_a_registration_without_code_fetches_nothing(store):
    shelf = FakeSwiftCodeStore()
    made, told = fetcher(shelf, store, Upload("later", "wasm", "wasm", "", "", 0))
    asyncio.run(made.fetch())
    assert (shelf.asked, told) == ([], [])


@pytest.mark.parametrize("konnector", [False, True])
def test_a_filter_of_volumes_is_tried_where_a_konnector_is_and_nowhere_else(store, konnector):
    tried = []

    def judge(trial, interpreter):
        tried.append((trial.environment, trial.info))
        return Verdict()

    known = Upload("rot", NBDKIT, "", "", digest(CODE), len(CODE), reverse=True, info={"help": "adds"})
    made = CodeFetcher(
        FakeSwiftCodeStore(CODE), store, lambda: [known], validate=judge, has_konnector=lambda: konnector
    )
    asyncio.run(made.fetch())
    assert made.usable_revisions == ({"rot": 1} if konnector else {})
    assert tried == ([(NBDKIT, {"help": "adds", "reversible": True})] if konnector else [])
    assert store.has(digest(CODE)) == konnector


def test_an_agent_without_a_place_for_code_says_which_options_name_one(store):
    made, _ = fetcher(None, store, upload())
    asyncio.run(made.fetch())
    assert "code_auth_url" in made.problems["upload/shout"]


def test_the_task_ends_when_it_is_cancelled(store):
    async def run():
        made, _ = fetcher(FakeSwiftCodeStore(CODE), store, upload())
        task = asyncio.create_task(made.run())
        while not store.has(digest(CODE)):
            await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(run())
