"""Objects that are read ahead of a client that reads in order."""

import pytest

from sluice_core.testing import assignment
from sluice_middleware.cache.store import CacheStore
from sluice_middleware.swift import green
from sluice_middleware.testing import ProxyStack

BODY = b"x" * 1000


@pytest.fixture
def stack(tmp_path, monkeypatch):
    monkeypatch.setattr(CacheStore, "sweep", lambda store: None)  # a thread that would outlive the test
    made = ProxyStack(tmp_path, cache_dir=str(tmp_path / "cache"), cache_alone=True)
    made.proxy.handler.cache.store_later = made.proxy.handler.cache.store_now  # at once, so that tests need not wait
    made.set_policies(
        assignment("p.1", keyword="caching", stage=50),
        assignment("p.2", keyword="prefetch", stage=45, params={"ahead": 4, "max_size": 2000}),
    )
    yield made
    assert made.all_closed(), "an answer was left open"


def store(stack, *names, body=BODY):
    for name in names:
        assert stack("PUT", f"/v1/AUTH_a/c/{name}", body=body).status_int == 201
    stack.swift.requests.clear()


def read(stack, name, **headers):
    """Read an object as a client, and wait for the reads that it starts; return Swift's requests."""
    assert stack("GET", f"/v1/AUTH_a/c/{name}", **headers).status_int in (200, 206, 404)
    for _ in range(20):
        green.yield_control()
    seen = [(method, path.removeprefix("/v1/AUTH_a/c/")) for method, path, _ in stack.swift.requests]
    stack.swift.requests.clear()
    return seen


NAMES = [f"part/{number:04d}" for number in range(20)]


def test_what_follows_three_reads_in_order_is_read_ahead_and_then_found_in_the_cache(stack):
    store(stack, *NAMES)
    for name in NAMES[:2]:
        assert read(stack, name) == [("GET", name)]
    third = read(stack, NAMES[2])
    assert third[:2] == [("GET", NAMES[2]), ("LIST", "/v1/AUTH_a/c")]
    assert third[2:] == [("GET", name) for name in NAMES[3:7]]
    assert read(stack, NAMES[3]) == []
    more = read(stack, NAMES[4])  # half of the objects read ahead are left
    assert more == [("LIST", "/v1/AUTH_a/c"), *(("GET", name) for name in NAMES[7:9])]
    asked = [seen for name in NAMES[5:] for seen in read(stack, name) if seen[0] == "GET"]
    assert asked == [("GET", name) for name in NAMES[9:]]


def test_objects_that_are_read_in_no_order_are_not_read_ahead(stack):
    store(stack, *NAMES)
    for number in (5, 3, 9, 1, 7, 2, 8):
        assert read(stack, NAMES[number]) == [("GET", NAMES[number])]


def test_a_client_that_skips_names_is_guessed_about_ever_less(stack):
    names = [f"day/{number:04d}" for number in range(350)]
    store(stack, *names)
    listed = [number for number, name in enumerate(names[::5], 1) if ("LIST", "/v1/AUTH_a/c") in read(stack, name)]
    assert listed == [3, 9, 21, 45, 69]


def test_large_objects_are_not_read_ahead_and_nothing_of_another_prefix(stack):
    store(stack, "a/1", "a/2", "a/3", "a/5", "b/1")
    store(stack, "a/4", body=bytes(5000))
    read(stack, "a/1")
    read(stack, "a/2")
    assert [path for method, path in read(stack, "a/3") if method == "GET"] == ["a/3", "a/5"]


def test_a_failure_of_the_listing_ends_the_reading_ahead_and_nothing_else(stack, monkeypatch):
    store(stack, *NAMES)

    def fail(request):
        raise OSError("no listing")

    monkeypatch.setattr(stack.swift, "_list", fail)
    for name in NAMES[:6]:
        assert read(stack, name)[:1] == [("GET", name)]


def test_names_of_any_characters_are_read_ahead(stack):
    names = [f"caf%C3%A9 {number}?".replace(" ", "%20").replace("?", "%3F") for number in range(8)]
    store(stack, *names)
    for name in names[:3]:
        read(stack, name)
    assert read(stack, names[3]) == []
