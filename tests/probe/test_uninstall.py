"""Removal of Sluice from a cluster: all stored objects are made plain, and stock Swift has them unchanged.

Tests docs/admin/uninstall.md.
"""

import json
import random
import shutil
import tempfile
from pathlib import Path

import pytest
from tests.support.cluster.command_line import command_line
from tests.support.cluster.object_files import file_metadata, object_files
from tests.support.cluster.rewrites import rewrite
from tests.support.cluster.uninstall import (
    marked_files,
    named_on_disks,
    run_documented,
    run_storage_daemons,
    seen,
    token,
    unwind,
    versions,
)

from sluice_aio.base.layout import Layout
from sluice_aio.base.setup import EC21, GOLD, Setup
from sluice_aio.base.swift_http import SwiftHttp
from sluice_aio.cluster.cluster import Cluster
from sluice_aio.cluster.components import DEFAULT, PLAIN_SWIFT
from sluice_client import Client

TEXT = b"".join(b"%d: a line that compresses\n" % number for number in range(40_000))
#: All objects that filters change: not the empty ones.
SOME = ("text", "noise", "tiny")
BODIES = {"text": TEXT, "noise": random.Random(13).randbytes(200_000), "tiny": b"tiny", "empty": b""}
#: Container → storage policy, and the filters of its objects.
CONTAINERS = {
    "never": (GOLD, ""),
    "node": (GOLD, "SET compression ON STORAGE_NODE, SET encryption ON STORAGE_NODE"),
    "node-ec": (EC21, "SET compression ON STORAGE_NODE, SET encryption ON STORAGE_NODE"),
    "proxy": (GOLD, "SET compression ON PROXY, SET encryption ON PROXY"),
    "proxy-ec": (EC21, "SET compression ON PROXY, SET encryption ON PROXY"),
    "versions": (GOLD, "SET compression ON PROXY"),
}
#: A global controller that compresses all uploads, whatever the policies.
CONTROLLER = b"""
from sluice_core.control import Assign, Controller, ControllerInfo


class Everything(Controller):
    info = ControllerInfo("everything", ("PUTS_SEC",), 1.0, "compress all that is uploaded")

    def compute_assignments(self, observation):
        yield Assign("AUTH_test", "compression", {}, "proxy")
"""
#: The containers of older versions, as Swift's own daemons see them.
OLDER = "\0versions\0versions"


@pytest.fixture
def layout():
    folder = Path(tempfile.mkdtemp(prefix="sluice-"))
    yield Layout.free(folder)
    shutil.rmtree(folder, ignore_errors=True)


def fill(client):
    for container, (policy, _) in CONTAINERS.items():
        more = {"x_versions_enabled": "true"} if container == "versions" else {}
        assert client.request("PUT", container, x_storage_policy=policy, **more).status in (201, 202)
        for name, body in BODIES.items():
            given = {"content_type": "text/plain", "x_object_meta_colour": "blue"}
            assert client.request("PUT", f"{container}/{name}", body, **given).status == 201
        assert client.request("POST", f"{container}/text", x_object_meta_colour="red").status == 202
    for name, body in BODIES.items():
        assert client.request("PUT", f"versions/{name}", body[:1000]).status == 201
    parts = json.dumps([{"path": f"proxy/{name}"} for name in ("text", "noise")]).encode()
    assert client.raw("PUT", f"{client.account}/proxy/slo?multipart-manifest=put", token(client), parts).status == 201
    assert client.request("PUT", "proxy/dlo", x_object_manifest="proxy/t").status == 201


def inodes(cluster, container):
    """File → its identity, for every file of a container's objects."""
    found = {}
    for name in BODIES:
        for path in object_files(cluster.device_folders, f"AUTH_test/{container}/{name}"):
            known = path.stat()
            found[path] = (known.st_ino, known.st_size, known.st_mtime_ns, sorted(file_metadata(path).items()))
    return found


def test_a_controller_that_runs_on_is_stopped_by_the_documented_command(layout, tmp_path, capsys, eventually):
    with (
        Cluster(layout, DEFAULT) as cluster,
        Client(cluster.api_url, cluster.token) as api,
    ):
        client = SwiftHttp(cluster.proxy_url).login("test:tester", "testing")
        assert client.request("PUT", "box").status == 201

        def is_encoded(name):
            """Whether a present upload is stored with other bytes than its own."""
            assert client.request("PUT", f"box/{name}", TEXT, content_type="text/plain").status == 201
            return f"AUTH_test/box/{name}" in named_on_disks(layout, "encoded", capsys)

        api.controller_code.upload("everything", CONTROLLER)
        api.controller_code.start("everything", wait=20)
        eventually(lambda: is_encoded("before"), limit=60)
        assert list(api.policies()) == []  # they were deleted
        program = command_line(cluster, tmp_path)
        assert "everything" in run_documented(program, "sluice controller list")
        run_documented(program, "sluice controller stop everything", "sluice controller stop spread")
        eventually(lambda: not is_encoded("after"), limit=60)
        client.close()


def test_after_the_documented_steps_stock_swift_has_every_byte(layout, capsys):
    with (
        Cluster(layout, DEFAULT | {"rewriter"}) as cluster,
        Client(cluster.api_url, cluster.token) as api,
    ):
        made = [
            api.create_policy(f"FOR CONTAINER AUTH_test/{container} DO {actions}", wait=20)["id"]
            for container, (_, actions) in CONTAINERS.items()
            if actions
        ]
        client = SwiftHttp(cluster.proxy_url).login("test:tester", "testing")
        fill(client)
        before, older, untouched = seen(client, CONTAINERS), versions(client, "versions"), inodes(cluster, "never")
        assert len(before) == len(CONTAINERS) * len(BODIES) + 2
        assert len(older) == 2 * len(BODIES)
        # all except those that are empty, or too small for compression alone
        assert len(marked_files(cluster)) == 4 * 3 * 3 + 3
        for policy in made:
            api.delete_policy(policy, wait=10)
        names = named_on_disks(layout, "encoded", capsys)
        assert {f"AUTH_test/{box}/{name}" for box in ("proxy", "proxy-ec") for name in SOME} < names
        assert any(name.startswith(f"AUTH_test/{OLDER}/") for name in names)
        done = rewrite(api, "AUTH_test", "plain")
        assert (done["failed"], done["skipped"]) == ({}, {})
        unwind(layout)
        assert named_on_disks(layout, "encoded", capsys) == set()
        assert marked_files(cluster) == {}
        assert (seen(client, CONTAINERS), versions(client, "versions")) == (before, older)
        client.close()
    with Cluster(layout, PLAIN_SWIFT, setup=Setup.plain()) as cluster:
        assert "sluice" not in (layout.swift_dir / "swift.conf").read_text()
        client = SwiftHttp(cluster.plain_url).login("test:tester", "testing")
        assert inodes(cluster, "never") == untouched
        assert (seen(client, CONTAINERS), versions(client, "versions")) == (before, older)
        run_storage_daemons(cluster)
        assert (seen(client, CONTAINERS), versions(client, "versions")) == (before, older)
        client.close()
