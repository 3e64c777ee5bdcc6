"""Request filters whose policies have conditions on size, type or tags of stored objects: when they act, their cost."""

import random

import pytest
from tests.support.middleware.request_filters import spy

from sluice_core.testing import assignment
from sluice_middleware.cache.store import CacheStore
from sluice_middleware.swift.proxy_api import ChunkReadError, Response
from sluice_middleware.testing import ProxyStack

SMALL, LARGE = b"s" * 100, b"l" * 5000
LIMIT = ["size", "<", 1000]


def random_bytes(number):
    return random.Random(number).randbytes(number)


@pytest.fixture
def late():
    return spy("late", 10, on_answer=True)


@pytest.fixture
def early():
    return spy("early", 20)


@pytest.fixture
def stack(tmp_path, monkeypatch, late, early):
    monkeypatch.setattr(CacheStore, "sweep", lambda store: None)  # a thread that would outlive the test
    made = ProxyStack(tmp_path, late, early, cache_dir=str(tmp_path / "cache"), cache_alone=True)
    made.proxy.handler.cache.store_later = made.proxy.handler.cache.store_now  # at once, so that tests need not wait
    yield made
    assert made.all_closed(), "an answer was left open"


def store(stack, name, body, **headers):
    assert stack("PUT", f"/v1/AUTH_a/c/{name}", body=body, **headers).status_int == 201
    stack.swift.requests.clear()


def methods(stack):
    seen = [method for method, *_ in stack.swift.requests]
    stack.swift.requests.clear()
    return seen


def words(log):
    found = [event[1:] for event in log]
    log.clear()
    return found


def test_the_answer_to_a_get_decides_about_a_filter_that_may_wait(stack, late):
    store(stack, "small", SMALL)
    store(stack, "large", LARGE)
    stack.set_policies(assignment("p.1", keyword="late", when=LIMIT))
    assert stack("GET", "/v1/AUTH_a/c/small").body == SMALL
    assert words(late.log) == [("wait",), ("response",), ("body_out",), ("end", True)]
    assert stack("GET", "/v1/AUTH_a/c/large").body == LARGE
    assert words(late.log) == [("wait",), ("end", False)]
    assert methods(stack) == ["GET", "GET"]


@pytest.mark.parametrize("condition", [["tag", ["hot"]], ["type", ["image/*"]], ["and", LIMIT, ["method", ["HEAD"]]]])
def test_type_and_tags_of_an_answer_decide_too(stack, late, condition):
    store(stack, "o", SMALL, X_Object_Meta_Tags="cold, Hot", Content_Type="image/png")
    stack.set_policies(assignment("p.1", keyword="late", when=condition))
    assert stack("HEAD").status_int == 200
    assert words(late.log) == [("wait",), ("response",), ("end", True)]


def test_the_size_of_a_range_is_that_of_the_whole_object(stack, late):
    store(stack, "o", LARGE)
    stack.set_policies(assignment("p.1", keyword="late", when=LIMIT))
    assert stack("GET", Range="bytes=0-9").body == LARGE[:10]
    assert words(late.log) == [("wait",), ("end", False)]


@pytest.mark.parametrize(("path", "ranges"), [("/v1/AUTH_a/c/none", ""), ("/v1/AUTH_a/c/o", "bytes=0-1,5-6")])
def test_an_answer_that_does_not_show_the_object_decides_against(stack, late, path, ranges):
    store(stack, "o", SMALL)
    stack.set_policies(assignment("p.1", keyword="late", when=LIMIT))
    stack("GET", path, **({"Range": ranges} if ranges else {}))
    assert words(late.log) == [("wait",), ("end", False)]


def test_a_narrower_policy_that_only_the_answer_puts_in_force_ends_a_wider_one(stack, late):
    store(stack, "small", SMALL)
    store(stack, "large", LARGE)
    narrow = assignment("n.1", "AUTH_a/c", keyword="noop", when=["size", ">", 1000])
    stack.set_policies(assignment("p.1", keyword="late"), narrow)
    stack("GET", "/v1/AUTH_a/c/small")
    assert words(late.log) == [("request",), ("response",), ("body_out",), ("end", True)]
    stack("GET", "/v1/AUTH_a/c/large")
    assert words(late.log) == [("request",), ("end", False)]


def test_a_filter_that_cannot_wait_does_not_hold_on_get(stack, early):
    store(stack, "o", SMALL)
    stack.set_policies(assignment("p.1", keyword="early", when=LIMIT))
    stack("GET")
    assert early.log == []
    assert methods(stack) == ["GET"]


@pytest.mark.parametrize("method", ["DELETE", "POST"])
def test_a_write_of_a_stored_object_costs_one_head(stack, early, method):
    store(stack, "small", SMALL)
    store(stack, "large", LARGE)
    stack.set_policies(assignment("p.1", keyword="early", when=LIMIT))
    stack(method, "/v1/AUTH_a/c/large")
    assert (words(early.log), methods(stack)) == ([], ["HEAD", method])
    stack(method, "/v1/AUTH_a/c/small")
    assert (words(early.log)[0], methods(stack)) == (("request",), ["HEAD", method])
    stack(method, "/v1/AUTH_a/c/none")
    assert (words(early.log), methods(stack)) == ([], ["HEAD", method])


def test_a_delete_is_refused_when_the_object_cannot_be_asked(stack, early):
    store(stack, "o", SMALL)
    stack.set_policies(assignment("p.1", keyword="early", when=LIMIT))
    answer = stack.swift._get
    stack.swift._get = lambda request: answer(request).__class__(request=request, status=503)
    refused = stack("DELETE")
    assert refused.status_int == 503
    assert "a policy needs attributes of the object, and HEAD answered 503" in refused.body.decode()
    assert methods(stack) == ["HEAD"]


def test_no_head_is_made_for_a_filter_that_does_not_act_on_the_method(stack):
    store(stack, "o", SMALL)
    stack.set_policies(assignment("p.1", keyword="caching", when=LIMIT))
    stack("DELETE")
    assert methods(stack) == ["DELETE"]


# -- the cache: a hit has no response of Swift's, so the cached copy decides


def cache_policy(**more):
    return assignment("p.1", keyword="caching", params={"admit": 1}, **more)


def test_only_objects_of_the_right_size_are_cached(stack):
    store(stack, "small", SMALL)
    store(stack, "large", LARGE)
    stack.set_policies(cache_policy(when=LIMIT))
    for path, body, expected in (("small", SMALL, ["GET"]), ("large", LARGE, ["GET"] * 3)):
        assert [stack("GET", f"/v1/AUTH_a/c/{path}").body for _ in range(3)] == [body] * 3
        assert methods(stack) == expected


@pytest.mark.parametrize(
    ("when", "expected"),
    [
        (LIMIT, ["HEAD"]),  # the size of a PUT's body is known; the first hit requests the headers
        (["type", ["image/*"]], ["GET"]),  # the type is not, so the first read is a miss
        (["tag", ["hot"]], ["GET"]),
        (["type", ["png"]], ["HEAD"]),  # by the name
    ],
)
def test_what_a_put_left_in_the_cache_is_used_as_far_as_it_is_known(stack, when, expected):
    stack.set_policies(cache_policy(when=when))
    store(stack, "o.png", SMALL, Content_Type="image/png", X_Object_Meta_Tags="hot")
    assert [stack("GET", "/v1/AUTH_a/c/o.png").body for _ in range(3)] == [SMALL] * 3
    assert methods(stack) == expected


def test_only_reads_of_objects_that_the_policy_is_about_count_as_misses(stack):
    store(stack, "small", SMALL)
    store(stack, "large", LARGE)
    stack.set_policies(cache_policy(when=LIMIT))
    for name in ("small", "small", "large", "large"):
        stack("GET", f"/v1/AUTH_a/c/{name}")
    counts = stack.proxy.handler.cache.store.table.counts()
    assert (counts["hits"], counts["misses"]) == (1, 1)


def test_an_object_that_grew_is_not_kept_again(stack):
    stack.set_policies(cache_policy(when=LIMIT))
    store(stack, "o", SMALL)
    stack("GET")
    store(stack, "o", LARGE)
    methods(stack)
    assert [stack("GET").body for _ in range(3)] == [LARGE] * 3
    assert methods(stack)[-2:] == ["GET", "GET"]


# -- how well an upload compresses


@pytest.fixture
def compressing(stack):
    stack.set_policies(assignment("p.1", keyword="compression", stage=300, when=["compressibility", ">", 2]))
    return stack


def is_compressed(stack, path="/v1/AUTH_a/c/o"):
    return "X-Object-Sysmeta-Sluice-Chain" in stack.swift.objects[path].headers


@pytest.mark.parametrize("sent", [b"the same words again " * 20_000, b"short", b"x" * 65536])
def test_uploads_that_compress_well_are_compressed_and_read_back(compressing, sent):
    assert compressing("PUT", body=sent).status_int == 201
    assert is_compressed(compressing) == (len(sent) > 100)
    assert compressing("GET").body == sent


def test_uploads_that_do_not_compress_reach_swift_as_they_came(compressing):
    noise = random_bytes(200_000)
    assert compressing("PUT", body=noise, Content_Length=str(len(noise))).status_int == 201
    stored = compressing.swift.objects["/v1/AUTH_a/c/o"]
    assert stored.body == noise
    assert "Content-Length" in compressing.swift.headers[-1]
    assert compressing("GET").body == noise


def test_a_filter_of_whole_requests_may_ask_for_compressibility(stack, early):
    stack.set_policies(assignment("p.1", keyword="early", when=["compressibility", "<", 2]))
    for body, seen in ((b"the same words again " * 1000, False), (random_bytes(5000), True)):
        assert stack("PUT", body=body).status_int == 201
        assert bool(words(early.log)) == seen
        assert stack.swift.objects["/v1/AUTH_a/c/o"].body == body


def test_no_byte_of_a_refused_upload_is_read(compressing):
    def refuse(request):
        return Response(request=request, status=403)

    class Untouched:
        def read(self, *_):
            raise AssertionError("the body was read")

    refused = compressing("PUT", env={"swift.authorize": refuse, "wsgi.input": Untouched(), "CONTENT_LENGTH": "9"})
    assert refused.status_int == 403


def test_an_upload_that_breaks_off_in_the_sample_is_refused_by_swift(compressing):
    class Broken:
        pieces = iter([b"some bytes"])

        def read(self, *_):
            for piece in self.pieces:
                return piece
            raise ChunkReadError("gone")

    assert compressing("PUT", env={"wsgi.input": Broken(), "CONTENT_LENGTH": "100000"}).status_int == 499
    assert compressing.swift.objects == {}
