"""Copies of contracted objects: with their motifs where these can be copied, else with their bytes."""

import hashlib

import pytest
from tests.support.cluster.motifs import WHOLE, contract, is_contracted, put, sources
from tests.support.cluster.people import acl_entry, swift_as

READER = "test:tester3"
ETAG = hashlib.md5(WHOLE).hexdigest()


@pytest.fixture
def reader(cluster):
    """A user of the account with only the rights of access lists."""
    client = swift_as(cluster, READER)
    yield client
    client.close()


def test_a_copy_in_another_account_has_the_bytes_and_no_motif(motifs, swift, plain):
    made = sources(swift, "co-from")
    put(swift, "co-from/o", WHOLE, x_object_motif=made, x_object_meta_colour="blue", content_type="text/csv")
    contract(motifs, "co-from/o")
    put(plain, "co-to", x_container_write=acl_entry(motifs, "test:tester"))
    for number in range(2):  # of a contracted object, and of one that is expanded by then
        name = f"co-to/o{number}"
        copied = swift.request("COPY", "co-from/o", destination=name, destination_account="AUTH_test2")
        assert (copied.status, copied.headers["etag"]) == (201, ETAG)
        found = plain.request("GET", name)  # by a proxy without Sluice: the bytes are really stored
        assert (found.body, found.headers["content-type"]) == (WHOLE, "text/csv")
        assert found.headers["x-object-meta-colour"] == "blue"
    assert swift.request("DELETE", "co-from/first").status == 204
    assert swift.request("GET", "co-from/o").body == WHOLE
    assert plain.request("GET", "co-to/o0").body == WHOLE, "it is made of nothing"


@pytest.mark.parametrize("allowed", [True, False], ids=["may read the sources", "may not"])
def test_a_copy_has_no_bytes_where_who_copies_may_read_the_sources(motifs, swift, reader, allowed):
    parts, container = f"co-parts-{allowed}", f"co-shared-{allowed}"
    made = sources(swift, parts)
    entry = acl_entry(motifs, READER)
    put(swift, container, x_container_read=entry, x_container_write=entry)
    put(swift, f"{container}/o", WHOLE, x_object_motif=made)
    if allowed:
        assert swift.request("POST", parts, x_container_read=entry).status == 204
    contract(motifs, f"{container}/o")
    copied = reader.request("PUT", f"{container}/copy", x_copy_from=f"{container}/o")
    assert (copied.status, copied.headers["etag"]) == (201, ETAG)
    assert is_contracted(motifs, f"{container}/copy") == allowed
    rows = {row["name"]: (row["bytes"], row["hash"]) for row in swift.listing(container)}
    assert rows["copy"] == rows["o"] == (len(WHOLE), ETAG)
    # the copy is made with the rights of the user who copied
    assert swift.request("POST", parts, x_remove_container_read="x").status == 204
    found = reader.request("GET", f"{container}/copy")
    if allowed:
        assert (found.status, b"may not read" in found.body) == (503, False), found
        found = swift.request("GET", f"{container}/copy")
        assert (found.status, b"may not read" in found.body) == (503, True), found
        assert swift.request("POST", parts, x_container_read=entry).status == 204
        found = reader.request("GET", f"{container}/copy")
    assert (found.status, found.body) == (200, WHOLE)


def test_a_copy_may_leave_the_metadata_behind_and_keeps_the_motif(motifs, swift):
    made = sources(swift, "co-fresh")
    put(swift, "co-fresh/o", WHOLE, x_object_motif=made, x_object_meta_colour="blue")
    contract(motifs, "co-fresh/o")
    fresh = {"x_fresh_metadata": "true", "x_object_meta_shape": "round"}
    assert swift.request("COPY", "co-fresh/o", destination="co-fresh/copy", **fresh).status == 201
    assert is_contracted(motifs, "co-fresh/copy")
    found = swift.request("GET", "co-fresh/copy")
    assert (found.body, found.headers["x-object-meta-shape"]) == (WHOLE, "round")
    assert "x-object-meta-colour" not in found.headers


@pytest.mark.parametrize(
    ("ranges", "expected"),
    [
        ("bytes=0-9", WHOLE[:10]),
        ("bytes=-10", WHOLE[-10:]),
        (f"bytes={len(WHOLE) // 2}-", WHOLE[len(WHOLE) // 2 :]),
    ],
)
def test_a_range_of_a_contracted_object_is_copied_as_bytes(motifs, swift, ranges, expected):
    container = f"co-range-{len(expected)}"
    made = sources(swift, container)
    put(swift, f"{container}/o", WHOLE, x_object_motif=made)
    contract(motifs, f"{container}/o")
    copied = swift.request("PUT", f"{container}/part", x_copy_from=f"{container}/o", range=ranges)
    assert (copied.status, copied.headers["etag"]) == (201, hashlib.md5(expected).hexdigest())
    assert not is_contracted(motifs, f"{container}/part")
    assert swift.request("GET", f"{container}/part").body == expected
    assert {row["name"]: row["bytes"] for row in swift.listing(container)}["part"] == len(expected)


def test_a_range_beyond_the_end_is_refused_as_of_any_object(motifs, swift):
    made = sources(swift, "co-beyond")
    put(swift, "co-beyond/o", WHOLE, x_object_motif=made)
    wanted = {"x_copy_from": "co-beyond/o", "range": f"bytes={len(WHOLE)}-"}
    before = swift.request("PUT", "co-beyond/part", **wanted)
    contract(motifs, "co-beyond/o")
    refused = swift.request("PUT", "co-beyond/part", **wanted)
    assert (refused.status, refused.body) == (before.status, before.body)
    assert before.status == 416
    assert is_contracted(motifs, "co-beyond/o")
