"""Sentences as in the papers: engines with levels, and filters in an order without effect."""

import hashlib

import pytest

from sluice_aio.cluster.disks import stored_sizes

TEXT = b"".join(b"%d: a line that compresses, the %dth\n" % (n, n * n) for n in range(5000))
FOLDER = "levels"


@pytest.fixture
def stored(cluster, swift):
    """Upload the text and return the size of each replica."""
    swift.request("PUT", FOLDER)

    def put(name):
        assert swift.request("PUT", f"{FOLDER}/{name}", TEXT).status == 201
        return stored_sizes(cluster.device_folders, f"AUTH_test/{FOLDER}")[name]

    return put


def test_every_level_is_stored_and_read_whatever_the_policy_says_later(api, swift, stored):
    sizes = {}
    for params in ("engine=gzip level=1", "engine=gzip level=6", "engine=gzip level=9", "level=-7", "level=19",
                   "engine=lz4 level=-100", "engine=lz4 level=12"):  # fmt: skip
        policy = api.create_policy(f"FOR CONTAINER AUTH_test/{FOLDER} DO SET compression WITH {params}", wait=10)
        sizes[params] = max(stored(params.replace(" ", "_")))
        api.delete_policy(policy["id"])
    assert sizes["engine=gzip level=9"] < min(sizes["engine=gzip level=6"], sizes["engine=gzip level=1"])
    assert sizes["level=19"] < sizes["level=-7"] < len(TEXT)
    assert sizes["engine=lz4 level=12"] < sizes["engine=lz4 level=-100"]
    for params in sizes:
        path = f"{FOLDER}/{params.replace(' ', '_')}"
        answer = swift.request("GET", path)
        assert (answer.body, answer.headers["etag"]) == (TEXT, hashlib.md5(TEXT).hexdigest())
        part = swift.request("GET", path, range="bytes=100000-100099")
        assert (part.status, part.body) == (206, TEXT[100_000:100_100])


def test_filters_run_by_their_stages_in_whatever_order_they_are_written(swift, policies, stored):
    actions = "compression WITH engine=gzip level=6, SET noop, SET caching WITH admit=1"
    shown = policies(f"FOR CONTAINER AUTH_test/{FOLDER} DO SET {actions}")
    assert [one["keyword"] for one in shown["actions"]] == ["compression", "noop", "caching"]
    assert max(stored("ordered")) < len(TEXT) / 2
    for _ in range(3):  # from the disks, then from the cache: the cache holds the plain object
        assert swift.request("GET", f"{FOLDER}/ordered").body == TEXT
