"""The example of docs/admin/controllers.md, as the page shows it: tried as an upload is, and run by an actor host."""

import hashlib
import logging
import re
from pathlib import Path

import pytest
from tests.support.actors.controllers import Uploads
from tests.support.actors.host import HostScenario, run_scenario, wait_until

from sluice_code.code_store import CodeStore
from sluice_code.loader import check_source
from sluice_code.native_trial import Trial, try_code
from sluice_core.messages.nodes import MetricBatch
from sluice_core.messages.uploads import CONTROLLER_CODE, Upload
from sluice_core.store.records import Draft

DOCS = Path(__file__).resolve().parents[4] / "docs"
PAGE = (DOCS / "admin" / "controllers.md").read_text()
EXAMPLE = re.search(r"```python\n(.*?)```", PAGE, re.DOTALL)[1]


@pytest.fixture(autouse=True)
def quiet_pika():
    """pika logs each step of each failed attempt to reach the missing broker."""
    logger = logging.getLogger("pika")
    logger.setLevel(logging.CRITICAL)
    yield
    logger.setLevel(logging.NOTSET)


def test_the_page_shows_the_example_as_it_is():
    written = (DOCS / "examples" / "spread.py").read_text()
    assert written.partition("\n\n")[2] == EXAMPLE
    assert len([line for line in EXAMPLE.splitlines() if line.strip()]) <= 20


def test_the_example_is_accepted_and_decides(redis_server, tmp_path):
    code = EXAMPLE.encode()
    sha256 = hashlib.sha256(code).hexdigest()
    CodeStore(tmp_path / "code").add(code, sha256)
    check_source(code, CONTROLLER_CODE)
    verdict = try_code(Trial(CONTROLLER_CODE, str(tmp_path / "code"), sha256, "spread"))
    assert (verdict.reason, verdict.main) == ("", "Spread")
    assert verdict.info == {
        "metrics": ["PUT_BW", "NODE_CPU"], "period": 10.0, "help": "compress where there is time for it",
    }  # fmt: skip
    # The first window may arrive alone: the next run, a second later, sees both metrics.
    info = {**verdict.info, "period": 1.0}
    upload = Upload("spread", "native", "python", verdict.main, sha256, len(code), info=info, kind=CONTROLLER_CODE)
    story = HostScenario(redis_server.url)

    async def test():
        await story.store.commit(Draft("admin", uploads=(upload,)))
        async with story.host(code_dir=str(tmp_path / "code")) as host:

            async def watching():
                return {"PUT_BW", "NODE_CPU"} <= set(host.router.aggregators.report())

            await wait_until(watching)
            story.clock.now = 1010.5
            rates = {"AUTH_calm": 1e5, "AUTH_busy": 2e6, "AUTH_flood": 5e7}
            host.router.aggregators.add_batch(
                MetricBatch("n1", "NODE_CPU", 1000, 1, {"node": {"n1": 0.2, "n2": 0.5}}, 10.0)
            )
            host.router.aggregators.add_batch(MetricBatch("n1", "PUT_BW", 1009, 1, {"tenant": rates}))
            story.clock.now = 1011.0
            for metric in ("NODE_CPU", "PUT_BW"):
                host.router.aggregators.close_due(metric)

            async def decided():
                return len(await story.assignments()) == 2

            await wait_until(decided)
            found = {one.target.name: (one.params["level"], one.place) for one in await story.store.assignments()}
            assert found == {"AUTH_busy": (9, "storage_node"), "AUTH_flood": (1, "storage_node")}
        await story.store.close()

    run_scenario(test(), 60)


def test_the_page_names_every_state_and_field_of_a_report(redis_server, tmp_path):
    uploads = Uploads(HostScenario(redis_server.url), tmp_path / "code")

    async def test():
        await uploads.put(EXAMPLE.encode())
        async with uploads.story.host(code_dir=str(uploads.folder)) as host:
            await uploads.watching(host)
            said = await uploads.report(host)
        await uploads.story.store.close()
        return said

    assert all(f"`{field}`" in PAGE for field in run_scenario(test(), 60) if field != "pid")
