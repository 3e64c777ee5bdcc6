"""Batches of HEADs and contractions on a real Swift: ``tests/functional/motifs/test_object_batches.py`` runs these.

``SLUICE_MOTIFS_CONF`` names the configuration of the cluster's motif daemon; the account must exist.
"""

import io
import os
import threading
import uuid
from collections import Counter

import pytest

from sluice_middleware.swift import internal_api

internal_api.eventlet_monkey_patch()

from sluice_middleware.motifs.object_views import ObjectViews, item_name, view_of  # noqa: E402
from sluice_middleware.swift import green  # noqa: E402
from sluice_middleware.swift.object_batches import ObjectAnswer  # noqa: E402
from sluice_middleware.wsgi import sysmeta  # noqa: E402
from sluice_middleware.wsgi.internal_client import SwiftClient, load_app, make_environment  # noqa: E402
from sluice_middleware.wsgi.response import UpstreamResponse  # noqa: E402
from sluice_middleware.wsgi.stored_object import carry_listing_values, describe_upload  # noqa: E402
from sluice_motifs_swift.objects.batched_app import BatchedApp, send_batch  # noqa: E402

ACCOUNT = "AUTH_test"


@pytest.fixture(scope="session")
def swift_app():
    return load_app(os.environ["SLUICE_MOTIFS_CONF"])


class Servers:
    """Real object servers, some with replaced responses; counts the requests of each."""

    def __init__(self):
        self.instead = {}
        self.seen = Counter()
        self.sizes = []

    def __call__(self, server, requests, patience):
        self.seen[server] += 1
        self.sizes.append(len(requests))
        names = sorted(self.seen)
        act = self.instead.get(names.index(server) if server in names else -1)
        return send_batch(server, requests, patience) if act is None else act(requests)


@pytest.fixture
def servers():
    return Servers()


class Clock:
    now = 1000.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def batched(swift_app, servers, clock):
    return BatchedApp(swift_app, servers, clock)


@pytest.fixture
def container(swift_app, batched, servers):
    name = f"batches-{uuid.uuid4().hex[:8]}"
    assert send(swift_app, "PUT", name, HTTP_X_STORAGE_POLICY="gold").code == 201
    put(swift_app, name, "known", b"so that all servers are known")
    head(batched, name, "known")
    assert len(servers.seen) == 3
    servers.seen.clear()
    servers.sizes.clear()
    servers.seen.update(dict.fromkeys(ring_servers(batched), 0))
    return name


def ring_servers(batched):
    return {(one["ip"], one["port"]) for one in batched._final.get_object_ring(0).devs if one}


def send(app, method, *path, body=b"", **headers):
    env = make_environment(method, ACCOUNT, *path)
    env |= {"wsgi.input": io.BytesIO(body), "CONTENT_LENGTH": str(len(body)), **headers}
    answer = UpstreamResponse(app, env)
    answer.body = b"".join(answer.body)
    return answer


def put(app, container, name, body):
    answer = send(app, "PUT", container, name, body=body, CONTENT_TYPE="text/plain", HTTP_X_OBJECT_META_COLOR="blue")
    assert answer.code == 201


def head(app, container, name):
    return send(app, "HEAD", container, name, HTTP_X_NEWEST="true")


def stored(app, container, name):
    return ObjectViews(app).stored(item_name((ACCOUNT, container, name)))


def contract(app, container, name, seen):
    env = make_environment("PUT", ACCOUNT, container, name)
    describe_upload(env, seen)
    carry_listing_values(env, seen, always=True)
    env |= {"CONTENT_LENGTH": "0", sysmeta.ETAG_ENV: seen.etag}
    env[sysmeta.CONTRACTED_ENV] = sysmeta.encode_contracted(seen.size)
    seen.replace_by(env)
    return UpstreamResponse(app, env).code


def listed(app, container):
    return [row for page in SwiftClient(app).list_objects(ACCOUNT, container, "", "", 100) for row in page]


def silent(requests):
    raise ConnectionRefusedError("nobody listens")


def answering(status):
    return lambda requests: [ObjectAnswer(status) for _ in requests]


@pytest.mark.parametrize("name", ["plain", "with space/and slash", "ünïcode-日本"])
def test_a_batch_sees_what_the_proxy_sees(swift_app, batched, container, servers, name):
    put(swift_app, container, name, b"some bytes")
    found, expected = stored(batched, container, name), stored(swift_app, container, name)
    assert found == expected
    assert view_of(name, found) == view_of(name, expected)
    assert servers.sizes == [1, 1, 1]


def test_objects_that_are_looked_at_together_take_few_requests(swift_app, batched, container, servers):
    for number in range(20):
        put(swift_app, container, f"o{number}", b"x" * number)
    views = green.map_concurrently(lambda number: stored(batched, container, f"o{number}"), range(20), 20)
    assert [one.size for one in views] == list(range(20))
    assert len(servers.sizes) <= 6, "one look at the first, one at all others"


def test_a_contraction_changes_nothing_that_clients_are_shown(swift_app, batched, container):
    put(swift_app, container, "o", b"some bytes")
    before, rows = stored(swift_app, container, "o"), listed(swift_app, container)
    assert contract(batched, container, "o", before) == 201
    after = stored(swift_app, container, "o")
    assert (after.contracted, after.version, after.size, after.etag) == (True, before.version, 10, before.etag)
    assert after.own_headers()["x-object-meta-color"] == "blue"
    assert send(swift_app, "GET", container, "o").body == b""
    assert listed(swift_app, container) == rows
    assert stored(batched, container, "o") == after
    assert send(swift_app, "DELETE", container, "o").code == 204
    assert listed(swift_app, container) == [row for row in rows if row["name"] != "o"]


def test_who_wrote_meanwhile_wins(swift_app, batched, container):
    put(swift_app, container, "o", b"some bytes")
    before = stored(batched, container, "o")
    put(swift_app, container, "o", b"others")
    assert contract(batched, container, "o", before) == 202
    assert send(swift_app, "GET", container, "o").body == b"others"


def test_what_is_gone_is_gone_for_the_proxy_too(swift_app, batched, container):
    assert head(batched, container, "none").code == 404
    put(swift_app, container, "o", b"some bytes")
    assert send(swift_app, "DELETE", container, "o").code == 204
    assert head(batched, container, "o").code == 404


def test_an_erasure_coded_object_is_left_to_the_proxy(swift_app, batched, container, servers):
    assert send(swift_app, "PUT", f"{container}-ec", HTTP_X_STORAGE_POLICY="ec21").code == 201
    put(swift_app, f"{container}-ec", "o", b"some bytes")
    found = stored(batched, f"{container}-ec", "o")
    assert found.size == 10
    assert contract(batched, f"{container}-ec", "o", found) == 201
    assert servers.sizes == []


@pytest.mark.parametrize("act", [silent, answering(404), answering(507)])
def test_a_look_that_not_all_servers_answer_is_the_proxys(swift_app, batched, container, servers, act):
    put(swift_app, container, "o", b"some bytes")
    servers.instead[1] = act
    assert stored(batched, container, "o") == stored(swift_app, container, "o")


def test_a_look_at_servers_that_disagree_is_the_proxys(swift_app, batched, container, servers):
    put(swift_app, container, "o", b"some bytes")
    old = stored(batched, container, "o")
    put(swift_app, container, "o", b"others")
    servers.instead[0] = lambda requests: [ObjectAnswer(200, old.headers) for _ in requests]
    assert stored(batched, container, "o").size == 6


def test_a_silent_server_is_left_alone_for_a_while(swift_app, batched, container, servers, clock):
    put(swift_app, container, "o", b"some bytes")
    servers.instead[2] = silent
    for _ in range(3):
        assert stored(batched, container, "o").size == 10
    assert sum(servers.seen.values()) == 3, "all three once, then the proxy alone"
    servers.instead.clear()
    clock.now += 61
    assert stored(batched, container, "o").size == 10
    assert sum(servers.seen.values()) == 6


def test_a_majority_contracts(swift_app, batched, container, servers):
    put(swift_app, container, "o", b"some bytes")
    before = stored(batched, container, "o")
    servers.instead[0] = answering(507)
    assert contract(batched, container, "o", before) == 201
    assert stored(batched, container, "o").contracted


def test_what_only_one_server_takes_is_unfinished_and_found_by_the_next_look(swift_app, batched, container, servers):
    put(swift_app, container, "o", b"some bytes")
    before = stored(batched, container, "o")
    servers.instead |= {0: answering(507), 1: answering(507)}
    assert contract(batched, container, "o", before) == 503
    servers.instead.clear()
    assert stored(batched, container, "o").contracted, "its bytes went on one server, and will on the others"


def test_a_client_that_writes_is_not_batched(swift_app, batched, container, servers):
    put(batched, container, "o", b"some bytes")
    assert send(batched, "HEAD", container, "o").code == 200
    assert send(batched, "GET", container, "o", HTTP_X_NEWEST="true").body == b"some bytes"
    assert servers.sizes == []


def test_one_that_is_slow_delays_those_behind_it_for_a_bounded_time(swift_app, batched, container, servers):
    put(swift_app, container, "o", b"some bytes")
    reached = threading.Event()

    def never(requests):
        reached.set()
        green.pause(0.5)
        raise TimeoutError("no answer")

    servers.instead[0] = never
    first = green.start_green(stored, batched, container, "o")
    reached.wait(10)
    second = stored(batched, container, "o")
    assert first.wait() == second


def test_a_look_for_which_a_client_waits_goes_before_unhurried_ones(swift_app, batched, container, servers):
    put(swift_app, container, "o", b"some bytes")
    reached, seen_by_client, in_time = threading.Event(), threading.Event(), []

    def slow(requests):
        del servers.instead[0]  # the next request is answered normally
        reached.set()
        in_time.append(seen_by_client.wait(10))
        return [ObjectAnswer(503) for _ in requests]

    servers.instead[0] = slow
    unhurried = green.start_green(ObjectViews(batched, unhurried=True).stored, f"{ACCOUNT}/{container}/o")
    reached.wait(10)
    seen = stored(batched, container, "o")
    seen_by_client.set()
    assert unhurried.wait() == seen
    assert in_time == [True]


def test_a_contraction_that_waited_long_for_others_is_not_begun(swift_app, batched, container, servers, clock):
    seen = {}
    for name in ("first", "second"):
        put(swift_app, container, name, b"some bytes")
        seen[name] = stored(batched, container, name)
    reached, waits = threading.Event(), threading.Event()

    def slow(requests):
        reached.set()
        waits.wait(10)
        clock.now += 3
        return [ObjectAnswer(507) for _ in requests]

    servers.instead[0] = slow
    first = green.start_green(contract, batched, container, "first", seen["first"])
    reached.wait(10)
    second = green.start_green(contract, batched, container, "second", seen["second"])
    green.yield_control()
    waits.set()
    assert (first.wait(), second.wait()) == (201, 503)
    assert not stored(swift_app, container, "second").contracted
