"""Policies with conditions on attributes of objects on a real Swift: which are cached, compressed, and kept."""

import os

import pytest

from sluice_aio.cluster.disks import stored_sizes
from sluice_client import ApiError
from sluice_core.cache.write_marks import object_digest

TEXT = b"".join(b"%d: words that compress well\n" % number for number in range(4000))
NOISE = os.urandom(len(TEXT))
BOX = "attributes"


@pytest.fixture
def box(swift):
    assert swift.request("PUT", BOX).status in (201, 202)
    return swift


@pytest.fixture
def is_cached(cluster):
    """Whether the proxy's node caches an object."""

    def find(name):
        key = object_digest(f"AUTH_test/{BOX}/{name}".encode()).hex()
        return (cluster.layout.cache / "objects" / key[:2] / key).exists()

    return find


def test_small_objects_are_cached_and_large_ones_are_not(box, policies, is_cached, eventually):
    policies(f"FOR CONTAINER AUTH_test/{BOX} WHEN OBJECT_SIZE<100k DO SET caching WITH admit=1")
    small, large = TEXT[:1000], TEXT + NOISE
    for name, body in (("small", small), ("large", large)):
        assert box.request("PUT", f"{BOX}/{name}", body).status == 201
    for _ in range(3):
        assert box.request("GET", f"{BOX}/small").body == small
        assert box.request("GET", f"{BOX}/large").body == large
        assert box.request("GET", f"{BOX}/large", range="bytes=0-9").body == large[:10]
    eventually(lambda: is_cached("small"))
    assert not is_cached("large")


def test_uploads_are_compressed_when_their_beginning_compresses_well(cluster, box, policies):
    policies(f"FOR CONTAINER AUTH_test/{BOX} WHEN OBJECT_COMPRESSIBILITY > 50% DO SET compression")
    for name, body in (("text", TEXT), ("noise", NOISE)):
        assert box.request("PUT", f"{BOX}/{name}", body).status == 201
        assert box.request("GET", f"{BOX}/{name}").body == body
        assert box.request("GET", f"{BOX}/{name}", range="bytes=70000-70009").body == body[70000:70010]
    sizes = stored_sizes(cluster.device_folders, f"AUTH_test/{BOX}")
    assert max(sizes["text"]) < len(TEXT) / 2
    assert min(sizes["noise"]) == len(NOISE)


def test_only_deleted_objects_with_a_tag_are_kept(box, policies):
    policies(f"FOR CONTAINER AUTH_test/{BOX} WHEN OBJECT_TAG = keep DO SET delete_guard WITH bin=kept")
    assert box.request("PUT", f"{BOX}/tagged", b"kept", x_object_meta_tags="keep, me").status == 201
    assert box.request("PUT", f"{BOX}/plain", b"gone").status == 201
    for name in ("tagged", "plain"):
        assert box.request("DELETE", f"{BOX}/{name}").status == 204
        assert box.request("GET", f"{BOX}/{name}").status == 404
    kept = {row["name"].split("/")[1] for row in box.listing("kept")}
    assert kept == {"tagged"}


def test_a_condition_that_can_never_hold_is_refused_with_the_reason(api):
    with pytest.raises(ApiError, match="the condition holds for none of these requests"):
        api.create_policy(f"FOR CONTAINER AUTH_test/{BOX} WHEN METHOD = GET DO SET compression")
