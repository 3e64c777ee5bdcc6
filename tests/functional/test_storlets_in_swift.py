"""Storlets in real containers, applied to objects of a real Swift by policies and by clients."""

import hashlib
import os
import shutil
import tempfile
from pathlib import Path

import pytest
from tests.support.sandbox.docker import Bench

from sluice_aio.base.layout import Layout
from sluice_aio.base.setup import Setup
from sluice_aio.base.swift_http import SwiftHttp
from sluice_aio.cluster.cluster import Cluster
from sluice_client import Client

SOURCES = Path(__file__).parents[2] / "filters" / "storlets"
TEXT = b"".join(b"%d the quick brown fox\n" % number for number in range(60_000))
DESCRIPTION = {"environment": "storlet", "language": "python"}
#: Fails in the middle of its output.
CRASHING = b"""
import os


class Crashing:
    def __init__(self, logger):
        pass

    def __call__(self, in_files, out_files, params):
        out_files[0].set_metadata({})
        out_files[0].write(in_files[0].read(70000))
        os.kill(os.getpid(), 9)
"""
CODE = {
    "same": ("identity_storlet.Identity", (SOURCES / "identity_storlet.py").read_bytes(), True),
    "copied": ("identity_storlet.Identity", (SOURCES / "identity_storlet.py").read_bytes(), False),
    "crashing": ("crashing.Crashing", CRASHING, False),
}


@pytest.fixture(scope="module")
def stand():
    folder = Path(tempfile.mkdtemp(prefix="sl-"))
    folder.chmod(0o711)
    try:
        with Bench.open() as bench:
            place = bench.place
            options = {
                "storlets_engine": place.engine,
                "storlets_image": place.image,
                "storlets_folder": str(folder / "storlets"),
            }
            with Cluster(
                Layout.free(folder / "c"), setup=Setup(proxy_options=options, reads_options=options)
            ) as cluster:
                yield cluster
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="module")
def here(stand):
    with Client(stand.api_url, stand.token) as made:
        yield made


@pytest.fixture(scope="module")
def swift_here(stand):
    return SwiftHttp(stand.proxy_url).login("test:tester", "testing")


@pytest.fixture(scope="module")
def enforced(here, eventually):
    for keyword, (main, code, reverse) in CODE.items():
        here.register_filter({**DESCRIPTION, "keyword": keyword, "main": main, "reverse": reverse})
        here.upload_filter(keyword, code, wait=10)

    def create(sentence):
        created = here.create_policy(sentence)

        def is_enforced():
            counted = here.policy(created["id"])["enforced"]
            return counted["nodes"] == counted["total"] >= 1

        eventually(is_enforced, 30)

    for keyword in CODE:  # all workers have them
        create(f"FOR CONTAINER AUTH_test/st-known-{keyword} DO SET {keyword} ON PROXY")
    return create


def test_a_reversible_storlet_is_undone_on_reading(swift_here, enforced):
    swift_here.request("PUT", "st-same")
    enforced("FOR CONTAINER AUTH_test/st-same DO SET same ON PROXY")
    for size in (1, 10_000, len(TEXT)):
        body = TEXT[:size]
        put = swift_here.request("PUT", "st-same/o", body, Content_Type="text/plain")
        assert (put.status, put.headers["etag"].strip('"')) == (201, hashlib.md5(body).hexdigest())
        answer = swift_here.request("GET", "st-same/o")
        assert (answer.status, answer.body) == (200, body)
        assert swift_here.request("GET", "st-same/o", Range="bytes=0-0").body == body[:1]


def test_a_client_may_run_what_a_policy_allows_and_nothing_else(swift_here, enforced):
    swift_here.request("PUT", "st-asked")
    enforced("FOR CONTAINER AUTH_test/st-asked DO SET storlets WITH allow='copied,crashing' ON PROXY")
    swift_here.request("PUT", "st-asked/o", TEXT, Content_Type="text/plain")
    plain = swift_here.request("GET", "st-asked/o")
    assert (plain.body, plain.headers["content-length"]) == (TEXT, str(len(TEXT)))
    asked = swift_here.request("GET", "st-asked/o", X_Run_Storlet="copied")
    assert (asked.status, asked.body) == (200, TEXT)
    assert "content-length" not in asked.headers
    refused = swift_here.request("GET", "st-asked/o", X_Run_Storlet="same")
    assert refused.status == 400
    assert b"`same` may not be run" in refused.body


def test_a_storlet_that_dies_fails_its_own_request_cleanly(swift_here, enforced):
    swift_here.request("PUT", "st-dying")
    enforced("FOR CONTAINER AUTH_test/st-dying DO SET storlets WITH allow='copied,crashing' ON PROXY")
    body = os.urandom(400_000)
    swift_here.request("PUT", "st-dying/o", body)
    put = swift_here.request("PUT", "st-dying/never", body, X_Run_Storlet="crashing")
    assert put.status == 503, put
    assert b"crashing" in put.body
    assert swift_here.request("GET", "st-dying/never").status == 404
    answer = swift_here.request("GET", "st-dying/o", X_Run_Storlet="crashing")
    assert answer.status == 503, answer.headers
    assert swift_here.request("GET", "st-dying/o", X_Run_Storlet="copied").body == body
    assert swift_here.request("GET", "st-dying/o").body == body
