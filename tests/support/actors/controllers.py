"""For tests of global controllers: code of some lines, uploaded to a folder instead of Swift."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import textwrap
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Final

from tests.support.actors.host import HostScenario, run_scenario, wait_until

from sluice_actors.host import Host
from sluice_code.code_store import CodeStore
from sluice_core.messages.uploads import CONTROLLER_CODE, Revision, Upload
from sluice_core.store.records import Draft

_HEAD: Final = """\
from sluice_core.control import Assign, Controller, ControllerInfo

class It(Controller):
    info = ControllerInfo("busy", metrics=("PUTS_SEC",))

    def compute_assignments(self, observation):
"""

#: Compresses any tenant with more than three PUTs a second; the level is the number.
BUSY_CODE: Final = """\
for path, value in observation.values("PUTS_SEC").items():
    if value > 3:
        yield Assign(path, "compression", {"level": int(value)})
"""


#: Seconds between two calls; a host uses a longer period, unless a test allows it (``rollout.SHORTEST_PERIOD``).
PERIOD: Final = 0.05


def code_of(body: str) -> bytes:
    """A controller whose ``compute_assignments`` has this body."""
    return (_HEAD + textwrap.indent(body, " " * 8)).encode()


class Uploads:
    """Uploads the controller ``busy`` as the API does, and returns its state."""

    def __init__(self, story: HostScenario, folder: Path) -> None:
        self.story = story
        self.folder = folder
        self.upload: Upload | None = None

    async def put(self, code: bytes, running: bool = True, **info: Any) -> Upload:
        """Another revision, or the first one."""
        sha256 = hashlib.sha256(code).hexdigest()
        CodeStore(self.folder).add(code, sha256)
        old = self.upload
        revisions: tuple[Revision, ...] = () if old is None else (old.current, *old.revisions)
        told = {"metrics": ["PUTS_SEC"], "period": PERIOD, "help": "", **info}
        self.upload = Upload(
            "busy", "native", "python", "", sha256, len(code), len(revisions) + 1, info=told,
            created=7, kind=CONTROLLER_CODE, revisions=revisions, running=running,
        )  # fmt: skip
        await self.story.store.commit(Draft("admin", uploads=(self.upload,)))
        return self.upload

    async def report(self, host: Host) -> dict[str, Any]:
        """The host's report of its state; empty when it does not run there."""
        said: dict[str, Any] = host.report()["controllers"].get("busy", {})
        return said

    async def state(self, host: Host, name: str, reason: str = "", revision: int = 0) -> dict[str, Any]:
        """Wait until it is in this state, and the reason contains these words."""

        async def condition() -> bool:
            said = await self.report(host)
            fits = said.get("state") == name and reason in said["reason"]
            return fits and revision in (0, said["revision"])

        await wait_until(condition)
        return await self.report(host)

    async def watching(self, host: Host) -> None:
        """Wait until windows reach it."""

        async def condition() -> bool:
            return "PUTS_SEC" in host.router.aggregators.report()

        await wait_until(condition)

    async def feed(self, host: Host, **values: float) -> None:
        """One window of PUTS_SEC, of these tenants."""
        await self.watching(host)
        await self.story.feed(host, {f"AUTH_{name}": value for name, value in values.items()})

    async def levels(self) -> dict[str, Any]:
        """Tenant → its level in force."""
        found = await self.story.assignments()
        return {one.target.name: one.params.get("level") for one in found.values()}

    async def has(self, **levels: Any) -> None:
        """Wait until exactly these tenants are compressed, with these levels."""
        wanted = {f"AUTH_{name}": level for name, level in levels.items()}

        async def condition() -> bool:
            return await self.levels() == wanted

        await wait_until(condition)

    async def keep_feeding(self, host: Host, **values: float) -> None:
        """Feed a window each tenth of a second; cancel it to stop."""
        while True:
            await self.feed(host, **values)
            await asyncio.sleep(0.1)


def run(
    uploads: Uploads,
    test: Callable[[Host], Awaitable[None]],
    code: str = BUSY_CODE,
    limit: float = 60.0,
    **options: Any,
) -> None:
    """Run ``test`` with a host on which the controller ``busy`` was uploaded."""

    async def story() -> None:
        if code:
            await uploads.put(code_of(code))
        async with uploads.story.host(code_dir=str(uploads.folder), **options) as host:
            await test(host)
        await uploads.story.store.close()

    run_scenario(story(), limit)


def alive(pid: int) -> bool:
    """Whether the process exists; an ended one that was not waited for does not count."""
    with contextlib.suppress(OSError), open(f"/proc/{pid}/stat") as stat:
        return stat.read().rpartition(")")[2].split()[0] != "Z"
    return False
