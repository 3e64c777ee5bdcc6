"""Objects derived from an object that a client writes are contracted before a client reads them."""

import pytest
from tests.support.cluster.motifs import FIRST, SECOND, concat, contract, is_contracted, motif, put

pytestmark = pytest.mark.usefixtures("leases")

#: Seconds for a worker to report to the daemon, and for the daemon to contract.
LIMIT = 15.0


@pytest.fixture
def derived(motifs, swift):
    """A container with an object, one made from it, a copy of the latter, and one made from the copy."""
    put(swift, "cs")
    put(swift, "cs/source", FIRST)
    put(swift, "cs/one", FIRST, x_object_motif=concat("cs/source"))
    copied = swift.request("COPY", "cs/one", destination="cs/copy")
    assert copied.status == 201, copied
    put(swift, "cs/two", FIRST + FIRST, x_object_motif=concat("cs/copy", "cs/one"))
    return [f"cs/{name}" for name in ("one", "copy", "two")]


def test_all_that_is_derived_from_a_written_object_is_contracted(motifs, swift, api, derived, eventually):
    assert not any(is_contracted(motifs, path) for path in derived)
    put(swift, "cs/source", SECOND)
    for path in derived:
        eventually(lambda path=path: is_contracted(motifs, path), LIMIT)
        found = api.motif("AUTH_test", *path.split("/"))
        assert found["contracted"]
        head = swift.request("HEAD", path).headers
        assert (head["x-sluice-stale"], int(head["content-length"])) == ("true", found["size"])
    assert swift.request("GET", "cs/two").body == SECOND + SECOND
    assert swift.request("GET", "cs/copy").body == SECOND


def test_what_is_derived_from_an_object_that_is_gone_keeps_its_bytes(motifs, swift, derived, eventually):
    assert swift.request("DELETE", "cs/source").status == 204
    put(swift, "cs/copy", SECOND)  # which shows that the changes were processed
    eventually(lambda: is_contracted(motifs, "cs/two"), LIMIT)
    assert not is_contracted(motifs, "cs/one")
    assert swift.request("GET", "cs/one").body == FIRST
    assert swift.request("GET", "cs/two").body == SECOND + FIRST


def test_new_content_of_an_object_that_is_made_again_is_a_change(motifs, swift, derived, eventually):
    made = motif("derive", of="AUTH_test/cs/source", filter="compression")
    put(swift, "cs/packed", b"what another version made", x_object_motif=made)
    put(swift, "cs/over", b"what another version made", x_object_motif=concat("cs/packed"))
    contract(motifs, "cs/packed")
    assert not is_contracted(motifs, "cs/over")
    packed = swift.request("GET", "cs/packed")
    eventually(lambda: is_contracted(motifs, "cs/over"), LIMIT)
    assert swift.request("GET", "cs/over").body == packed.body
