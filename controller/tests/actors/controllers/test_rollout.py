"""The revision of a controller that runs, with a real Redis and real processes; the test makes the windows."""

import asyncio

import pytest
from tests.support.actors.controllers import BUSY_CODE, Uploads, alive, code_of, run
from tests.support.actors.host import HostScenario, wait_until


@pytest.fixture
def uploads(redis_server, tmp_path):
    return Uploads(HostScenario(redis_server.url), tmp_path / "code")


def test_a_new_revision_takes_the_place_of_the_old_one(uploads):
    async def test(host):
        await uploads.feed(host, a=8)
        await uploads.has(a=8)
        pid = (await uploads.report(host))["pid"]
        await uploads.put(code_of(BUSY_CODE.replace("int(value)", "1")))
        await uploads.has(a=1)
        said = await uploads.state(host, "running", revision=2)
        assert said["pid"] != pid
        assert not alive(pid)

    run(uploads, test)


def test_the_old_revision_decides_until_the_new_one_has_answered(uploads):
    async def test(host):
        await uploads.feed(host, a=8)
        await uploads.has(a=8)
        await uploads.put(code_of("while True: pass"))
        feeding = asyncio.create_task(uploads.keep_feeding(host, a=9))
        try:
            await uploads.has(a=9)  # the new revision is abandoned ten seconds later
            assert (await uploads.report(host))["revision"] == 1
        finally:
            feeding.cancel()

    run(uploads, test)


BROKEN = {
    "cannot be loaded": ("import nothing_of_that_name", "cannot be loaded"),
    "raises": (code_of("raise ValueError('new')").decode(), "ValueError: new"),
    "ends": (code_of("__import__('os')._exit(1)").decode(), "status 1"),
    "answers nonsense": (code_of("yield Assign('AUTH_a', 'nothing')").decode(), "unknown action `nothing`"),
}


@pytest.mark.parametrize("fault", BROKEN)
def test_the_old_revision_goes_on_when_the_new_one(uploads, fault):
    code, reason = BROKEN[fault]

    async def test(host):
        await uploads.feed(host, a=8)
        await uploads.has(a=8)
        pid = (await uploads.report(host))["pid"]
        await uploads.put(code.encode())
        said = await uploads.state(host, "running", "revision 2 does not run, revision 1 does", revision=1)
        assert reason in said["reason"]
        assert said["pid"] == pid
        await uploads.feed(host, a=9)
        await uploads.has(a=9)
        await uploads.put(code_of(BUSY_CODE.replace("int(value)", "1")))
        await uploads.has(a=1)

        async def content():
            said = await uploads.report(host)
            return (said["state"], said["reason"], said["revision"]) == ("running", "", 3)

        await wait_until(content)

    run(uploads, test)


def test_a_host_that_begins_with_a_broken_revision_takes_the_one_before(uploads):
    async def test(host):
        await uploads.put(code_of(BUSY_CODE))
        await uploads.put(b"import nothing_of_that_name")
        await uploads.feed(host, a=8)
        await uploads.has(a=8)
        await uploads.state(host, "running", "revision 2 does not run, revision 1 does", revision=1)

    run(uploads, test, code="")


def test_missing_code_of_a_revision_is_reported(uploads):
    async def test(host):
        upload = await uploads.put(code_of(BUSY_CODE))
        (uploads.folder / upload.sha256).unlink()
        await uploads.feed(host, a=8)
        await uploads.state(host, "failed", "given no place for code")

    run(uploads, test, code="")
