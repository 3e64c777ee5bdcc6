"""Swift's container-sync copies objects whose bytes were replaced before it was set up to another container."""

import pytest
from tests.support.cluster.daemons import run_round
from tests.support.cluster.motifs import contract, is_contracted
from tests.support.cluster.rewrites import rewrite

TEXT = b"".join(b"%d: the quick brown fox jumps over the lazy dog\n" % n for n in range(5_000))


def put(swift, path, body=b"", **headers):
    answer = swift.request("PUT", path, body, **headers)
    assert answer.status in (201, 202), (path, answer)


def synchronize(swift, source, target):
    """Set up container-sync once, as Swift's own guide describes."""
    put(swift, target, x_container_sync_key="k")
    answer = swift.request(
        "POST", source, x_container_sync_to=f"//sluice/aio/{swift.account.rpartition('/')[2]}/{target}",
        x_container_sync_key="k",
    )  # fmt: skip
    assert answer.status == 204


def run_sync(cluster):
    """Two rounds without an error: the first one leaves some rows to other servers, the second one checks them."""
    for _ in range(2):
        run_round(cluster, "container-sync")


@pytest.fixture
def rewriter(motifs):
    motifs.add({"rewriter"})
    yield motifs
    motifs.remove("rewriter")


def test_objects_that_were_rewritten_or_contracted_are_synchronized_afterwards(rewriter, api, swift, policies):
    put(swift, "sy-from")
    put(swift, "sy-src")
    put(swift, "sy-src/a", TEXT)
    put(swift, "sy-from/rewritten", TEXT, content_type="text/plain", x_object_meta_colour="blue")
    put(swift, "sy-from/untouched", TEXT[:1000])
    put(swift, "sy-from/contracted", TEXT, x_object_motif="duplicate_of; source=AUTH_test/sy-src/a")
    policies("FOR OBJECT AUTH_test/sy-from/rewritten DO SET compression ON PROXY")
    assert rewrite(api, "AUTH_test/sy-from", "policies")["rewritten"] == 1
    contract(rewriter, "sy-from/contracted")
    assert is_contracted(rewriter, "sy-from/contracted")
    before = {name: swift.request("HEAD", f"sy-from/{name}").headers for name in ("rewritten", "untouched")}
    synchronize(swift, "sy-from", "sy-to")
    run_sync(rewriter)
    for name, body in (("rewritten", TEXT), ("untouched", TEXT[:1000]), ("contracted", TEXT)):
        copied = swift.request("GET", f"sy-to/{name}")
        assert (copied.status, copied.body) == (200, body), name
    copied = swift.request("HEAD", "sy-to/rewritten").headers
    assert (copied["content-type"], copied["x-object-meta-colour"]) == ("text/plain", "blue")
    assert float(copied["x-timestamp"]) == pytest.approx(float(before["rewritten"]["x-timestamp"]), abs=2e-5)
    assert swift.request("HEAD", "sy-to/untouched").headers["x-timestamp"] == before["untouched"]["x-timestamp"]
    seen = swift.request("HEAD", "sy-from/rewritten").headers
    assert seen["x-timestamp"] == before["rewritten"]["x-timestamp"], "clients see what they saw"


def test_a_container_that_holds_what_was_synchronized_can_be_synchronized_back(rewriter, api, swift, policies):
    """Both directions: the other cluster may have no Sluice, and its container-sync fails on offsets."""
    put(swift, "sy-one")
    put(swift, "sy-one/o", TEXT)
    policies("FOR OBJECT AUTH_test/sy-one/o DO SET compression ON PROXY")
    assert rewrite(api, "AUTH_test/sy-one", "policies")["rewritten"] == 1
    synchronize(swift, "sy-one", "sy-two")
    run_sync(rewriter)
    stored = swift.request("HEAD", "sy-two/o").headers["x-timestamp"]
    synchronize(swift, "sy-two", "sy-one")
    run_sync(rewriter)
    assert swift.request("GET", "sy-one/o").body == swift.request("GET", "sy-two/o").body == TEXT
    put(swift, "sy-two/o", b"newer")
    run_sync(rewriter)
    assert swift.request("GET", "sy-one/o").body == b"newer"
    assert float(swift.request("HEAD", "sy-two/o").headers["x-timestamp"]) > float(stored)
