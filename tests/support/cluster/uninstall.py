"""Common parts of the probes that remove Sluice: all that clients see, traces on disks, and the steps on each node."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote

import pytest
from tests.support.cluster.daemons import run_daemon
from tests.support.cluster.object_files import file_metadata

from sluice_aio.base.layout import OBJECT_DEVICES, Layout
from sluice_aio.base.swift_http import SwiftHttp
from sluice_aio.cluster.cluster import Cluster
from sluice_aio.cluster.disks import data_files
from sluice_middleware.object_server.diskfile.cli import main
from sluice_middleware.object_server.diskfile.stored_metadata import ENTRY
from sluice_middleware.wsgi.sysmeta import POSTED_PREFIX, PREFIX

_PAGE: Final = Path(__file__).parents[3] / "docs" / "admin" / "uninstall.md"
#: Headers that differ between any two responses.
_MOMENTS: Final = {"date", "x-trans-id", "x-openstack-request-id"}
_OURS: Final = (ENTRY.lower(), PREFIX, POSTED_PREFIX)
_DAEMONS: Final = ("object-auditor", "object-replicator", "object-reconstructor", "object-updater")


def run_documented(program: Sequence[str], command: str, documented: str = "") -> str:
    """The output of a command of the page about uninstalling.

    :param program: the client with the options that a cluster needs
    :param documented: the command as the page has it, with names of its own; empty: the same
    """
    assert (documented or command) in _PAGE.read_text(encoding="utf-8")
    name, *words = command.split()
    assert name == "sluice"
    ended = subprocess.run([*program, *words], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


def token(client: SwiftHttp) -> dict[str, str]:
    """The header of authentication."""
    return {"X-Auth-Token": client.token}


def versions(client: SwiftHttp, container: str) -> dict[tuple[str, str], Any]:
    """Name and version → all that a client can see of it."""
    target = f"{client.account}/{container}"
    rows = json.loads(client.raw("GET", f"{target}?versions&format=json", token(client)).body)
    found = {}
    for row in rows:
        got = client.raw("GET", f"{target}/{row['name']}?version-id={row['version_id']}", token(client))
        found[row["name"], row["version_id"]] = (row, got.status, got.body, got.headers["etag"])
    return found


def seen(client: SwiftHttp, containers: Collection[str]) -> dict[str, Any]:
    """Path → all that a client can see of the object."""
    found = {}
    for container in containers:
        for row in client.listing(container):
            path = f"{container}/{row['name']}"
            got, part = client.request("GET", path), client.request("GET", path, range="bytes=3-70000")
            head = client.request("HEAD", path)
            headers = {name: value for name, value in got.headers.items() if name not in _MOMENTS}
            found[path] = (got.status, got.body, headers, part.status, part.body, head.headers["etag"], row)
    return found


def marked_files(cluster: Cluster) -> dict[Path, set[str]]:
    """Files with metadata of Sluice → the names of these metadata, in lower case."""
    found = {}
    for data in data_files(cluster.device_folders):
        for path in (data, *data.parent.glob("*.meta")):  # the latter has the posted metadata
            names = {name.lower() for name in file_metadata(path) if name.lower().startswith(_OURS)}
            if names:
                found[path] = names
    return found


def unwind(layout: Layout) -> None:
    """The operator's command on each node, for all of its devices."""
    for server, device in OBJECT_DEVICES.items():
        assert main(["--config", str(layout.swift_dir / f"{server}.conf"), "unwind", device]) == 0


def named_on_disks(layout: Layout, command: str, capsys: pytest.CaptureFixture[str]) -> set[str]:
    """Objects that ``sluice-diskfile`` names on all nodes: ``encoded`` on proxies, or ``contracted``."""
    capsys.readouterr()
    for server, device in OBJECT_DEVICES.items():
        assert main(["--config", str(layout.swift_dir / f"{server}.conf"), command, device]) == 0
    return {unquote(line)[1:] for line in capsys.readouterr().out.splitlines()}


def run_storage_daemons(cluster: Cluster) -> None:
    """A round of all daemons that read stored files, which quarantines no file."""
    for name in _DAEMONS:
        run_daemon(cluster, name)
    assert [one for device in cluster.device_folders for one in device.glob("quarantined/*/*")] == []
