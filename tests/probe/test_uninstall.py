"""Taking Sluice out of a cluster: what storage nodes transformed is made plain, and stock Swift has everything."""

import random
import shutil
import tempfile
from pathlib import Path
from urllib.parse import unquote

import pytest
from tests.support.cluster.daemons import run_daemon
from tests.support.cluster.object_files import file_metadata, object_files

from sluice_aio.base.layout import OBJECT_DEVICES, Layout
from sluice_aio.base.setup import EC21, GOLD, Setup
from sluice_aio.base.swift_http import SwiftHttp
from sluice_aio.cluster.cluster import Cluster
from sluice_aio.cluster.components import PLAIN_SWIFT
from sluice_aio.cluster.disks import data_files
from sluice_client import Client
from sluice_middleware.object_server.diskfile.cli import main
from sluice_middleware.object_server.diskfile.stored_metadata import ENTRY
from sluice_middleware.wsgi.sysmeta import CHAIN, PREFIX

TEXT = b"".join(b"%d: a line that compresses\n" % number for number in range(40_000))
#: All that filters change: not what is empty.
SOME = ("text", "noise", "tiny")
BODIES = {"text": TEXT, "noise": random.Random(13).randbytes(200_000), "tiny": b"tiny", "empty": b""}
#: Container → storage policy, and what is done to its objects.
CONTAINERS = {
    "never": (GOLD, ""),
    "node": (GOLD, "SET compression ON STORAGE_NODE, SET encryption ON STORAGE_NODE"),
    "node-ec": (EC21, "SET compression ON STORAGE_NODE, SET encryption ON STORAGE_NODE"),
    "proxy": (GOLD, "SET compression ON PROXY, SET encryption ON PROXY"),
    "proxy-ec": (EC21, "SET compression ON PROXY, SET encryption ON PROXY"),
}
OURS = (ENTRY.lower(), PREFIX)


@pytest.fixture
def layout():
    folder = Path(tempfile.mkdtemp(prefix="sluice-"))
    yield Layout.free(folder)
    shutil.rmtree(folder, ignore_errors=True)


def fill(client):
    for container, (policy, _) in CONTAINERS.items():
        assert client.request("PUT", container, x_storage_policy=policy).status in (201, 202)
        for name, body in BODIES.items():
            given = {"content_type": "text/plain", "x_object_meta_colour": "blue"}
            assert client.request("PUT", f"{container}/{name}", body, **given).status == 201
        assert client.request("POST", f"{container}/text", x_object_meta_colour="red").status == 202


def seen(client, containers=CONTAINERS):
    """All that a client can tell of every object."""
    found = {}
    for container in containers:
        for row in client.listing(container):
            path = f"{container}/{row['name']}"
            got, part = client.request("GET", path), client.request("GET", path, range="bytes=3-70000")
            head = client.request("HEAD", path)
            headers = {name: value for name, value in got.headers.items() if name not in MOMENTS}
            found[path] = (got.status, got.body, headers, part.status, part.body, head.headers["etag"], row)
    return found


MOMENTS = {"date", "x-trans-id", "x-openstack-request-id"}


def inodes(cluster, container):
    """File → what it is, for every file of a container's objects."""
    found = {}
    for name in BODIES:
        for path in object_files(cluster.device_folders, f"AUTH_test/{container}/{name}"):
            known = path.stat()
            found[path] = (known.st_ino, known.st_size, known.st_mtime_ns, sorted(file_metadata(path).items()))
    return found


def ours(cluster):
    """Files that say anything of Sluice."""
    return [
        path
        for path in data_files(cluster.device_folders)
        if any(name.lower().startswith(OURS) for name in file_metadata(path))
    ]


def unwind(layout):
    """What an operator runs on each node, for all of its devices."""
    for server, device in OBJECT_DEVICES.items():
        assert main(["--config", str(layout.swift_dir / f"{server}.conf"), "unwind", device]) == 0


def encoded(layout, capsys):
    """What ``sluice-diskfile`` says was encoded on proxies."""
    for server, device in OBJECT_DEVICES.items():
        assert main(["--config", str(layout.swift_dir / f"{server}.conf"), "encoded", device]) == 0
    return {unquote(line)[1:] for line in capsys.readouterr().out.splitlines()}


def test_after_the_documented_steps_stock_swift_has_every_byte(layout, capsys):
    with Cluster(layout) as cluster, Client(cluster.api_url, cluster.token) as api:
        made = [
            api.create_policy(f"FOR CONTAINER AUTH_test/{container} DO {actions}", wait=20)["id"]
            for container, (_, actions) in CONTAINERS.items()
            if actions
        ]
        client = SwiftHttp(cluster.proxy_url).login("test:tester", "testing")
        fill(client)
        before, untouched = seen(client), inodes(cluster, "never")
        assert len(before) == len(CONTAINERS) * len(BODIES)
        assert len(ours(cluster)) == 4 * 3 * 3  # all but those that are empty
        for policy in made:
            api.delete_policy(policy, wait=10)
        unwind(layout)
        assert {CHAIN} == {name for path in ours(cluster) for name in file_metadata(path) if name in (CHAIN, ENTRY)}
        assert seen(client) == before
        capsys.readouterr()
        names = encoded(layout, capsys)
        assert sorted(names) == sorted(f"AUTH_test/{box}/{name}" for box in ("proxy", "proxy-ec") for name in SOME)
        for name in names:  # what the proxy encoded is written anew by copying it onto itself
            path = name.partition("/")[2]
            assert client.request("COPY", path, destination=path).status == 201
        assert encoded(layout, capsys) == set()
        assert ours(cluster) == []
        client.close()
    with Cluster(layout, PLAIN_SWIFT, setup=Setup.plain()) as cluster:
        assert "sluice" not in (layout.swift_dir / "swift.conf").read_text()
        client = SwiftHttp(cluster.plain_url).login("test:tester", "testing")
        assert inodes(cluster, "never") == untouched
        after = seen(client)
        for container in ("never", "node", "node-ec"):
            assert {path: what for path, what in after.items() if path.startswith(f"{container}/")} == {
                path: what for path, what in before.items() if path.startswith(f"{container}/")
            }
        for container in ("proxy", "proxy-ec"):
            for name, body in BODIES.items():
                status, content, headers, _, part, *_ = after[f"{container}/{name}"]
                old = before[f"{container}/{name}"][2]
                assert (status, content) == (200, body)
                assert part == body[3:70_001] or name in ("tiny", "empty")
                assert headers["etag"] == old["etag"]
                assert headers["x-object-meta-colour"] == old["x-object-meta-colour"]
        for name in ("object-auditor", "object-replicator", "object-reconstructor", "object-updater"):
            run_daemon(cluster, name)
        assert [one for device in cluster.device_folders for one in device.glob("quarantined/*/*")] == []
        assert seen(client) == after
        client.close()
