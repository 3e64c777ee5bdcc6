"""Lost data are restored by the steps of the page about backups: Redis twice, and a key file."""

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest
import redis
from tests.support.cluster.object_files import file_metadata, object_files
from tests.support.pages import Shell, read_page, shell_blocks

from sluice_aio.base.layout import Layout
from sluice_aio.base.ports import HOST, probe
from sluice_aio.base.swift_http import SwiftHttp
from sluice_aio.cluster.cluster import Cluster
from sluice_client import Client
from sluice_middleware.wsgi.sysmeta import CHAIN

BODY = b"".join(b"%d: a line that is worth a backup\n" % number for number in range(5000))
SENTENCES = (
    "FOR TENANT AUTH_test DO SET compression, encryption",
    "FOR TENANT AUTH_busy WHEN PUTS_SEC > 1000 DO SET noop TRANSIENT",
    "FOR CONTAINER AUTH_test/papers WHEN OBJECT_TYPE = PAPERS DO SET noop",
)
BLOCKS = shell_blocks(read_page("admin/backup.md"))


@pytest.fixture(scope="module")
def cluster():
    folder = Path(tempfile.mkdtemp(prefix="sluice-"))
    try:
        with Cluster(Layout.free(folder)) as running:
            yield running
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="module")
def api(cluster):
    with Client(cluster.api_url, cluster.token) as made:
        yield made


@pytest.fixture(scope="module")
def swift(cluster):
    client = SwiftHttp(cluster.proxy_url).login("test:tester", "testing")
    assert client.request("PUT", "kept").status in (201, 202)
    return client


@pytest.fixture(scope="module")
def steps(cluster, tmp_path_factory):
    """Runs the blocks under a heading of the page."""
    environment = {
        "SLUICE_URL": cluster.api_url,
        "SLUICE_TOKEN_FILE": str(cluster.layout.token_file),
        "REDIS_URL": cluster.redis_url,
    }
    folder = tmp_path_factory.mktemp("backup")
    with Shell(folder, environment, {"/etc/sluice/keys.json": str(cluster.layout.key_file)}) as shell:

        def run(heading, only=slice(None)):
            chosen = [block for block in BLOCKS if block.heading == heading][only]
            assert chosen, heading
            return "".join(shell.run_block(block) for block in chosen)

        run.folder = folder
        yield run


@pytest.fixture(scope="module")
def before(api, swift, steps):
    """All configured objects, an object under them, and the backup of both."""
    api.collection("/registry/terms").create({"term": "PAPERS", "patterns": ["pdf"]})
    for sentence in SENTENCES:
        api.create_policy(sentence, wait=10)
    assert swift.request("PUT", "kept/o", BODY).status == 201
    steps("Back up")
    return decided(api)


def decided(api):
    """The configured state, except the actions of actors."""
    names = ("id", "policy", "created_at", "created_by", "enabled")
    return sorted(tuple(one[name] for name in names) for one in api.policies())


def is_transformed(cluster, swift, name):
    """Whether a present upload is stored as the policy says."""
    assert swift.request("PUT", f"kept/{name}", BODY).status == 201
    files = object_files(cluster.device_folders, f"AUTH_test/kept/{name}")
    return len(files) == 3 and all("encryption" in file_metadata(path).get(CHAIN, "") for path in files)


def everywhere(api):
    shown = api.policies()
    return bool(shown) and all(one["enforced"]["nodes"] == one["enforced"]["total"] == 1 for one in shown)


def test_policies_are_back_after_an_import_and_no_request_was_without_them(
    cluster, api, swift, steps, before, eventually
):
    with redis.Redis.from_url(cluster.redis_url) as connection:
        connection.flushall()
    eventually(lambda: [one["state"] for one in api.nodes()] == ["stale_history"], 20)
    assert is_transformed(cluster, swift, "wiped")
    said = steps("Redis is empty")
    assert "PAPERS" in said
    assert is_transformed(cluster, swift, "adopted")
    eventually(lambda: [one["state"] for one in api.nodes()] == ["ok"], 20)
    eventually(lambda: everywhere(api), 20)
    assert decided(api) == before
    assert is_transformed(cluster, swift, "restored")
    assert swift.request("GET", "kept/o").body == BODY


def test_a_copy_of_redis_brings_back_all_that_was_in_it(cluster, api, swift, steps, before, eventually):
    # the copy has data that an import cannot have: the single changes
    late = api.create_policy("FOR TENANT AUTH_late DO SET noop", wait=10)["id"]
    for name in ("api", "actors", "redis"):
        cluster.kill(name)
    data = cluster.layout.data / "redis"
    data.rename(data.with_name("redis-lost"))
    data.mkdir()
    shutil.copy(steps.folder / "sluice.rdb", data / "dump.rdb")
    port = cluster.layout.ports["redis"]
    argv = ["redis-server", "--port", str(port), "--bind", HOST, "--dir", str(data), "--save", "", "--appendonly", "no"]
    with subprocess.Popen(argv, stdout=subprocess.DEVNULL) as first:
        eventually(lambda: os.path.exists(f"/proc/{first.pid}") and pong(port), 20)
        steps("Redis is back with an old copy", slice(0, 1))
        assert first.wait(30) == 0
    for name in ("redis", "actors", "api"):
        cluster.restart(name)
    eventually(lambda: [one["state"] for one in api.nodes()] == ["stale_history"], 30)
    assert is_transformed(cluster, swift, "copied")
    assert decided(api) == before
    steps("Redis is back with an old copy", slice(1, 2))
    eventually(lambda: [one["state"] for one in api.nodes()] == ["ok"], 20)
    eventually(lambda: everywhere(api), 20)
    assert late not in [one["id"] for one in api.policies()]
    assert is_transformed(cluster, swift, "adopted-again")


def pong(port):
    try:
        return probe(port, b"PING\r\n").startswith(b"+PONG")
    except OSError:
        return False


def test_objects_are_readable_when_the_key_file_is_back(cluster, swift, steps, before, eventually):
    cluster.layout.key_file.unlink()
    cluster.restart("proxy")
    swift.close()
    refused = eventually(lambda: (found := swift.request("GET", "kept/o")).status == 503 and found, 20)
    assert b"key" in refused.body
    assert swift.request("PUT", "kept/never", BODY).status == 503
    steps("A key file is lost")
    eventually(lambda: swift.request("GET", "kept/o").body == BODY, 20)
    assert swift.request("GET", "kept/never").status == 404
