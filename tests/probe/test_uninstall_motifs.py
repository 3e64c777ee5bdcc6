"""Removal of Sluice while objects are contracted: they are expanded, and stock Swift has them unchanged.

Tests docs/admin/elasticity.md.
"""

import time
from pathlib import Path

from tests.support.cluster.command_line import command_line
from tests.support.cluster.motifs import motif_daemon, stored_copies
from tests.support.cluster.uninstall import (
    marked_files,
    named_on_disks,
    run_documented,
    run_storage_daemons,
    seen,
    unwind,
    versions,
)

from sluice_aio.base.layout import Layout
from sluice_aio.base.setup import EC21, GOLD, Setup
from sluice_aio.base.swift_http import SwiftHttp
from sluice_aio.cluster.cluster import Cluster
from sluice_aio.cluster.components import DEFAULT, PLAIN_SWIFT
from sluice_client import Client
from sluice_middleware.wsgi.sysmeta import MOTIF, MOTIF_WRITTEN, POSTED_MOTIF

PAGE = (Path(__file__).parents[2] / "docs" / "admin" / "uninstall.md").read_text(encoding="utf-8")
FIRST, SECOND = (
    b"".join(b"%s %d: a line that compresses\n" % (word, n) for n in range(9_000)) for word in (b"a", b"b")
)
ROWS = b"name,kwh\n" + b"".join(b"meter%d,%d\n" % (n, n * n) for n in range(5_000))
NAMES = b"name\n" + b"".join(b"meter%d\n" % n for n in range(5_000))
#: Container → storage policy, and the filters of its objects besides motifs.
CONTAINERS = {
    "sources": (GOLD, ""),
    "made": (GOLD, "SET compression ON PROXY"),
    "fragments": (EC21, "SET encryption ON STORAGE_NODE"),
    "cold": (GOLD, "SET compression ON PROXY, SET encryption ON PROXY"),
    "versions": (GOLD, ""),
}
CONCAT = "concat; of=AUTH_test/sources/first,AUTH_test/sources/second"
BACKWARDS = "concat; of=AUTH_test/sources/second,AUTH_test/sources/first"
DERIVE = "derive; of=AUTH_test/sources/rows; filter=csv_select; options=columns=name"
TIER = f"tier; policy={EC21}"
#: The objects in the order of their upload: path, bytes, motif.
OBJECTS = (
    ("sources/first", FIRST, ""),
    ("sources/second", SECOND, ""),
    ("sources/rows", ROWS, ""),
    ("made/joined", FIRST + SECOND, CONCAT),
    ("made/chosen", NAMES, DERIVE),
    ("sources/posted", FIRST, ""),
    ("fragments/joined", FIRST + SECOND, CONCAT),
    ("cold/moved", SECOND, TIER),
    ("versions/o", FIRST + SECOND, CONCAT),
    ("versions/o", SECOND + FIRST, BACKWARDS),
)
#: Objects that have motifs in the end, one of them by a POST.
WITH_MOTIFS = 7
#: Seconds: a Redis that was just started grants no leases for ten, and unneeded copies stay for twelve.
LIMIT = 90.0


def wait_until(question, what):
    end = time.monotonic() + LIMIT
    while not (answer := question()):
        assert time.monotonic() < end, what
        time.sleep(0.2)
    return answer


def fill(client):
    for container, (policy, _) in CONTAINERS.items():
        more = {"x_versions_enabled": "true"} if container == "versions" else {}
        assert client.request("PUT", container, x_storage_policy=policy, **more).status in (201, 202)
    for path, body, motif in OBJECTS:
        given = {
            "content_type": "text/plain",
            "x_object_meta_colour": "blue",
            **({"x_object_motif": motif} if motif else {}),
        }
        assert client.request("PUT", path, body, **given).status == 201, path
    posted = client.request("POST", "sources/posted", x_object_meta_colour="red", x_object_motif=TIER)
    assert posted.status == 202, posted


def contract_all(cluster, api):
    """Contract all objects that can be made again; return the id of the policy that says so."""
    wait_until(api.motif_templates, "no daemon announces templates")
    policy = api.create_policy("FOR TENANT AUTH_test DO SET elasticity WITH target_size=0 verify=expand", wait=20)["id"]

    def states():
        return [one["contracted"] for one in api.motifs("AUTH_test")]

    wait_until(lambda: states() == [True] * WITH_MOTIFS, "not everything was contracted")
    return policy


def end_change_stream(cluster):
    """Set the option of the page in the configuration of the motif daemon."""
    line = "change_stream = false"
    assert f"`{line}`" in PAGE
    conf = cluster.layout.configs / "motifs.conf"
    text = conf.read_text(encoding="utf-8")
    assert text.count("[motifs]\n") == 1
    conf.write_text(text.replace("[motifs]\n", f"[motifs]\n{line}\n"), encoding="utf-8")
    cluster.restart("motifs")


def test_after_the_documented_steps_stock_swift_has_all_that_was_contracted(tmp_path_factory, capsys):
    folder = tmp_path_factory.mktemp("u")
    layout = Layout.free(folder / "c")
    setup = Setup(motif_options={"copy_sweep": "1", "copy_grace": "12"})
    with (
        Cluster(layout, DEFAULT | {"rewriter"}, setup=setup) as cluster,
        Client(cluster.api_url, cluster.token) as api,
        motif_daemon(cluster),
    ):
        made = [
            api.create_policy(f"FOR CONTAINER AUTH_test/{container} DO {actions}", wait=20)["id"]
            for container, (_, actions) in CONTAINERS.items()
            if actions
        ]
        client = SwiftHttp(cluster.proxy_url).login("test:tester", "testing")
        fill(client)
        before, older = seen(client, CONTAINERS), versions(client, "versions")
        assert (len(before), len(older)) == (len(OBJECTS) - 1, 2)
        made.append(contract_all(cluster, api))
        assert len(wait_until(lambda: named_on_disks(layout, "contracted", capsys), "")) == WITH_MOTIFS
        assert len(stored_copies(cluster)) == 2

        # 1. policies, expansion, and the copies that `tier` keeps
        for policy in made:
            api.delete_policy(policy, wait=10)
        end_change_stream(cluster)
        program = command_line(cluster, folder)
        run_documented(program, "sluice motif expand --all")
        wait_until(lambda: not named_on_disks(layout, "contracted", capsys), "disks name contracted objects")
        assert len(stored_copies(cluster)) == 2, "they stay for the next contraction"
        said = run_documented(program, "sluice motif detach --all --template tier")
        assert (said.count(" has 0 motifs"), said.count(" has no such motif")) == (2, WITH_MOTIFS - 2)
        wait_until(lambda: not stored_copies(cluster), "hidden copies stay")
        # 2. encoded objects, and 3. objects encoded on disks only
        run_documented(
            program, "sluice rewrite create AUTH_test plain --wait", "sluice rewrite create AUTH_acme plain --wait"
        )
        unwind(layout)
        for command in ("encoded", "contracted"):
            assert named_on_disks(layout, command, capsys) == set()
        assert set().union(*marked_files(cluster).values()) == {
            MOTIF.lower(),
            MOTIF_WRITTEN.lower(),
            POSTED_MOTIF.lower(),
        }
        assert (seen(client, CONTAINERS), versions(client, "versions")) == (before, older)
        client.close()
    with Cluster(layout, PLAIN_SWIFT, setup=Setup.plain()) as cluster:
        client = SwiftHttp(cluster.plain_url).login("test:tester", "testing")
        assert (seen(client, CONTAINERS), versions(client, "versions")) == (before, older)
        run_storage_daemons(cluster)
        assert (seen(client, CONTAINERS), versions(client, "versions")) == (before, older)
        # remaining metadata of motifs have no effect
        assert client.request("PUT", "made/copy", x_copy_from="made/joined").status == 201
        assert client.request("POST", "sources/posted", x_object_meta_colour="green").status == 202
        assert client.request("GET", "made/copy").body == FIRST + SECOND
        assert client.request("GET", "sources/posted").body == FIRST
        client.close()
