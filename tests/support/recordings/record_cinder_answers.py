"""``python -m tests.support.recordings.record_cinder_answers``: records Cinder's responses to Sluice's adapter.

Starts Keystone and Cinder with Sluice's NBD driver, runs the steps of :mod:`.cinder_answers`, and writes
``cinder_answers.json`` with Cinder's version.  Ids, times, secrets, ports and this machine's name are replaced, equal
ones by equal ones.
"""

from __future__ import annotations

import json
import re
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

import requests
from keystoneauth1 import token_endpoint
from keystoneauth1.session import Session
from tests.support.block.cinder import login
from tests.support.recordings.cinder_answers import ADMINISTRATOR, MEMBER, NOBODY, PATH, STEPS, STRANGER, Ids, told

from sluice_aio.base.layout import Layout
from sluice_aio.base.setup import KEYSTONE, Setup
from sluice_aio.cluster.cluster import Cluster
from sluice_aio.keystone import seed, venv
from sluice_volumes.cinder.adapter import Cinder

#: User of a step → a user of Keystone's.
_USERS: Final = {ADMINISTRATOR: seed.ADMIN, MEMBER: "alice", STRANGER: "ulf"}
_SETTLES: Final = 30.0
#: The step before which its project reaches its quota of volumes.
_BEYOND: Final = "volume beyond the quota"
#: Statuses of a volume whose attachment was not completed.
_WAITING: Final = ("attaching", "reserved")
_ID: Final = re.compile(r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b|\b[0-9a-f]{32}\b")
_SECRET: Final = re.compile(r"\b[0-9a-f]{64}\b")
_TIME: Final = re.compile(r"\b20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?")


class Names:
    """Replaces values that differ from one recording to the next."""

    def __init__(self, layout: Layout) -> None:
        self._ids = {NOBODY: NOBODY}
        self._fixed = {socket.gethostname(): "node1", str(layout.root): "/var/lib/sluice"}

    def replace(self, text: str) -> str:
        for name, other in self._fixed.items():
            text = text.replace(name, other)
        text = _SECRET.sub("0" * 64, text)
        text = _ID.sub(lambda found: self._ids.setdefault(found[0], self._named(found[0])), text)
        text = re.sub(r"127\.0\.0\.1:\d+", "127.0.0.1:10809", text)
        return _TIME.sub("2026-01-01T00:00:00.000000", text)

    def _named(self, found: str) -> str:
        number = f"{len(self._ids) + 1:032x}"
        parts = (number[:8], number[8:12], number[12:16], number[16:20], number[20:])
        return "-".join(parts) if "-" in found else number


class Asked(requests.Session):
    """Records each exchange with Cinder."""

    def __init__(self, root: str) -> None:
        super().__init__()
        self.exchanges: list[dict[str, Any]] = []
        self._root = root
        self.hooks["response"].append(self._note)

    def _note(self, answer: requests.Response, *args: Any, **options: Any) -> None:
        path = str(answer.url).removeprefix(self._root)
        body = answer.json() if answer.content else None
        exchange = {"method": answer.request.method, "path": path, "status": answer.status_code, "body": body}
        self.exchanges.append(exchange)


def _adapter(layout: Layout, who: str) -> tuple[Cinder, Asked]:
    session = login(layout, _USERS[who]).client.session
    root = f"{layout.url('cinder')}/v3/{session.get_project_id()}"
    asked = Asked(root)
    plugin = token_endpoint.Token(root, session.get_token())
    return Cinder(Session(auth=plugin, session=asked), endpoint_override=root), asked


def _settle(administrator: Cinder, ids: Ids) -> None:
    """Wait until Cinder has completed the request."""
    deadline = time.monotonic() + _SETTLES
    while time.monotonic() < deadline:
        volumes = administrator.volumes(everybody=True)
        snapshots = administrator.snapshots(ids["volume"], everybody=True) if "volume" in ids else []
        if all(one.is_settled or one.status in _WAITING for one in (*volumes, *snapshots)):
            return
        time.sleep(0.1)
    raise TimeoutError("Cinder is not done")


def record(layout: Layout) -> Mapping[str, Any]:
    """The exchanges of all steps."""
    names, ids = Names(layout), Ids()
    adapters = {who: _adapter(layout, who) for who in _USERS}
    steps = {}
    for name, (who, step) in STEPS.items():
        cinder, asked = adapters[who]
        if name == _BEYOND:
            project = login(layout, _USERS[MEMBER]).client.session.get_project_id()
            login(layout, seed.ADMIN).quotas.update(project, volumes=1)
        asked.exchanges.clear()
        found = told(cinder, step, ids)
        noted = {"who": who, "exchanges": list(asked.exchanges), "told": found, "ids": dict(ids)}
        steps[name] = json.loads(names.replace(json.dumps(noted)))
        _settle(adapters[ADMINISTRATOR][0], ids)
    return steps


def main() -> None:
    """Record all steps."""
    folder = Path(tempfile.mkdtemp(prefix="sluice-"))
    layout = Layout.free(folder)
    try:
        with Cluster(layout, {"keystone", "cinder"}, setup=Setup(parts=frozenset(), auth=KEYSTONE)):
            steps = record(layout)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    asked = [
        str(venv.python(service="cinder")),
        "-c",
        "from importlib.metadata import version; print(version('cinder'))",
    ]
    cinder = subprocess.run(asked, capture_output=True, text=True, check=True).stdout.strip()
    versions = {"cinder": cinder, "python-cinderclient": version("python-cinderclient")}
    PATH.write_text(json.dumps({"versions": versions, "steps": steps}, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
