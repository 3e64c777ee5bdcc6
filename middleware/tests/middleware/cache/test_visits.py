"""The responses of a caching proxy, and its requests to the disks."""

import time

import pytest
from tests.support.middleware.cache import PATH, Disks, Stored, Worker

from sluice_core.cache.write_marks import object_digest
from sluice_middleware.cache import node_cache

BODY = bytes(range(256)) * 40
KEY = object_digest(b"AUTH_a/c/o")


@pytest.fixture
def disks():
    return Disks()


@pytest.fixture
def worker(disks, tmp_path):
    return Worker(disks, tmp_path / "cache")


def asked(disks):
    """The requests to the disks since the last call."""
    seen = [method for method, _ in disks.seen]
    disks.seen.clear()
    return seen


def fill(worker, disks, body=BODY, **headers):
    """An object that was written and read, and is certainly cached."""
    assert worker.request("PUT", body=body, **headers).code == 201
    assert worker.get() == body
    asked(disks)
    assert worker.get() == body
    assert asked(disks) == []


def test_a_second_read_is_answered_from_the_cache(worker, disks):
    disks.objects[PATH] = Stored(BODY, {"Content-Type": "text/plain"}, "1700000000.00000")
    assert [worker.get() for _ in range(3)] == [BODY] * 3
    assert asked(disks) == ["GET"]


def test_the_first_read_after_a_put_sends_one_head(worker, disks):
    worker.request("PUT", body=BODY)
    assert [worker.get() for _ in range(3)] == [BODY] * 3
    assert asked(disks) == ["PUT", "HEAD"]


REQUESTS = [
    ("GET", {}),
    ("HEAD", {}),
    ("GET", {"range": "bytes=5-9"}),
    ("GET", {"range": "bytes=-7"}),
    ("GET", {"range": "bytes=10000-"}),
    ("GET", {"range": "bytes=0-1,9-11,100-200"}),
    ("GET", {"range": "bytes=99999-"}),
    ("GET", {"range": "bytes=oops"}),
    ("HEAD", {"range": "bytes=5-9"}),
    ("GET", {"if_none_match": "*"}),
    ("GET", {"if_none_match": "nothing"}),
    ("GET", {"if_match": "nothing"}),
    ("GET", {"if_match": "*", "range": "bytes=1-2"}),
    ("HEAD", {"if_none_match": "*"}),
    ("GET", {"if_modified_since": "Fri, 01 Jan 2038 00:00:00 GMT"}),
    ("GET", {"if_unmodified_since": "Fri, 01 Jan 1999 00:00:00 GMT"}),
    ("GET", {"if_range": "nothing", "range": "bytes=5-9"}),
    ("GET", {"x_backend_etag_is_at": "X-Object-Sysmeta-Other", "if_none_match": "other"}),
    ("GET", {"x_backend_etag_is_at": "X-Object-Sysmeta-Missing", "if_none_match": "other"}),
    ("GET", {"x_backend_ignore_range_if_metadata_present": "X-Object-Sysmeta-Other", "range": "bytes=1-2"}),
    ("GET", {"x_newest": "true"}),
]


@pytest.mark.parametrize(("method", "headers"), REQUESTS)
@pytest.mark.parametrize("body", [BODY, b"", b"x" * 3_000_000], ids=["some", "none", "much"])
def test_a_hit_is_answered_as_the_object_server_would(worker, disks, method, headers, body):
    fill(worker, disks, body, x_object_meta_colour="blue", x_object_sysmeta_other="other", content_encoding="gzip")
    ours = worker.request(method, **headers)
    assert asked(disks) == ([method] if goes_past(headers, ours) else [])
    worker.filter = type("Nothing", (type(worker.filter),), {"visit": lambda self, call: None})()
    theirs = worker.request(method, **headers)
    assert ours.status == theirs.status
    assert without_boundary(ours) == without_boundary(theirs)


def goes_past(headers, reply):
    return "x_newest" in headers or reply.code == 412


def without_boundary(reply):
    """Headers and body, with the random boundary replaced."""
    kind = reply.headers.get("Content-Type")
    body = b"".join(reply.body)
    if kind and "boundary=" in kind:
        boundary = kind.rpartition("boundary=")[2]
        return {**reply.headers, "Content-Type": "multipart"}, body.replace(boundary.encode(), b"boundary")
    return dict(reply.headers), body


@pytest.mark.parametrize("headers", [{"if_none_match": "*"}, {"range": "bytes=99999-"}, {"if_match": "nothing"}])
def test_conditional_answers_of_erasure_coded_objects_come_from_swift(worker, disks, headers):
    fill(worker, disks, x_backend_fragments="{}")
    worker.request("GET", **headers)
    assert asked(disks) == ["GET"]
    worker.request("GET", range="bytes=1-2")
    assert asked(disks) == []


@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_an_unauthorized_read_is_refused_by_swift(worker, disks, method):
    fill(worker, disks)
    worker.allowed = False
    worker.request(method)
    assert asked(disks) == [method]


def test_objects_of_a_deleted_container_are_not_answered_from_the_cache(worker, disks):
    fill(worker, disks)
    worker.cache._there.clear()
    worker.container_status = 404
    worker.get()
    assert asked(disks) == ["GET"]


@pytest.mark.parametrize("headers", [{"x_newest": "true"}, {"origin": "http://there"}])
def test_unusual_requests_bypass_the_cache(worker, disks, headers):
    fill(worker, disks)
    worker.request("GET", **headers)
    assert asked(disks) == ["GET"]


@pytest.mark.parametrize("method", ["PUT", "POST", "DELETE"])
def test_a_write_through_this_node_invalidates_at_once(worker, disks, tmp_path, method):
    other = Worker(disks, tmp_path / "cache")
    fill(worker, disks)
    other.request(method, body=b"new" if method == "PUT" else b"", x_object_meta_a="b")
    reply = worker.request("GET")
    wanted = {"PUT": (200, b"new"), "POST": (200, BODY), "DELETE": (404, None)}[method]
    assert reply.code == wanted[0]
    if reply.code == 200:
        assert b"".join(reply.body) == wanted[1]
        assert reply.headers["X-Object-Meta-A"] == "b"


def test_after_a_post_a_head_fetches_the_new_headers(worker, disks):
    fill(worker, disks)
    worker.request("POST", x_object_meta_a="b")
    asked(disks)
    for _ in range(2):
        reply = worker.request("GET")
        assert reply.headers["X-Object-Meta-A"] == "b"
    assert asked(disks) == ["HEAD"]


def test_headers_larger_than_their_reserved_room_are_kept(worker, disks):
    fill(worker, disks)
    worker.request("POST", x_object_meta_a="b" * 3000)
    assert [len(worker.request("GET").headers["X-Object-Meta-A"]) for _ in range(2)] == [3000] * 2
    assert worker.get() == BODY
    assert asked(disks) == ["POST", "HEAD"]


def test_strict_mode_validates_each_hit_with_all_replicas(disks, tmp_path):
    worker = Worker(disks, tmp_path, {"mode": "strict"})
    disks.objects[PATH] = Stored(BODY, {"Content-Type": "text/plain"}, "1700000000.00000")
    assert [worker.get() for _ in range(3)] == [BODY] * 3
    assert asked(disks) == ["GET", "HEAD", "HEAD"]
    disks.asleep[PATH] = disks.objects[PATH]
    disks.objects[PATH] = Stored(b"new", {"Content-Type": "text/plain"}, "1700000009.00000")  # a write without a report
    seen = worker.request("HEAD", x_newest="true").headers["Content-Length"]
    assert seen == "3"
    disks.asleep.clear()
    assert worker.get() == b"new"


def test_an_untrusted_entry_is_validated(disks, tmp_path):
    worker = Worker(disks, tmp_path, cache_alone="false")
    disks.objects[PATH] = Stored(BODY, {"Content-Type": "text/plain"}, "1700000000.00000")
    worker.get()
    worker.get()
    assert asked(disks) == ["GET", "HEAD"]
    worker.cache.store.marks.trust_until(time.monotonic_ns() + 10**12)
    worker.get()
    assert asked(disks) == []
    disks.objects[PATH] = Stored(b"new", {"Content-Type": "text/plain"}, "1700000009.00000")
    worker.cache.store.marks.trust_until(0)
    assert worker.get() == b"new"


def test_after_missed_writes_each_object_is_validated_once(worker, disks):
    fill(worker, disks)
    worker.cache.store.marks.mark_missed()
    assert [worker.get(), worker.get()] == [BODY, BODY]
    assert asked(disks) == ["HEAD"]
    disks.objects[PATH] = Stored(b"new", {"Content-Type": "text/plain"}, "1700000099.00000")
    worker.cache.store.marks.mark_missed()
    assert [worker.get(), worker.get()] == [b"new", b"new"]
    assert asked(disks) == ["HEAD", "GET"]


def test_an_object_is_validated_after_its_ttl(disks, tmp_path):
    worker = Worker(disks, tmp_path, {"ttl": 0.0})
    disks.objects[PATH] = Stored(BODY, {"Content-Type": "text/plain"}, "1700000000.00000")
    assert [worker.get(), worker.get()] == [BODY, BODY]
    assert asked(disks) == ["GET", "HEAD"]


def test_an_answer_of_a_stale_replica_is_not_kept(worker, disks):
    worker.request("PUT", body=b"old")
    disks.asleep[PATH] = disks.objects[PATH]
    worker.request("PUT", body=b"new")
    assert worker.get() in (b"old", b"new")  # Swift's own response, from any replica
    disks.asleep.clear()
    assert [worker.get() for _ in range(2)] == [b"new"] * 2


def test_a_replica_that_has_not_heard_of_the_last_write_confirms_nothing(worker, disks):
    fill(worker, disks, x_object_meta_colour="blue")
    disks.asleep[PATH] = disks.objects[PATH]
    worker.request("PUT", body=BODY, x_object_meta_colour="red")  # the same bytes
    asked(disks)
    assert worker.get() == BODY
    assert asked(disks) == ["HEAD", "GET"]


def test_a_write_during_a_read_prevents_caching(worker, disks):
    disks.objects[PATH] = Stored(b"old", {"Content-Type": "text/plain"}, "1700000000.00000")
    writer = Worker(disks, worker.cache._options["cache_dir"])
    reading = worker.start("GET")
    writer.request("PUT", body=b"new")
    assert b"".join(reading.body) == b"old"
    reading.body.close()
    assert worker.get() == b"new"


def test_a_write_begun_by_another_node_makes_the_entry_untrusted(worker, disks):
    fill(worker, disks)
    worker.cache.store.marks.begin(KEY)
    assert [worker.get(), worker.get()] == [BODY, BODY]
    assert asked(disks) == ["HEAD", "HEAD"]
    worker.cache.store.marks.end(KEY, 1)
    worker.get()
    worker.get()
    assert asked(disks) == ["HEAD"]


def test_a_write_with_a_future_timestamp_counts_as_the_newest(worker, disks):
    fill(worker, disks)
    worker.request("PUT", body=b"ahead", x_timestamp="1900000000.00000")
    assert worker.get() == b"ahead"
    asked(disks)
    assert worker.get() == b"ahead"
    assert asked(disks) == []


def test_an_expired_object_is_not_answered_from_the_cache(worker, disks):
    soon = str(int(time.time()) + 1000)
    fill(worker, disks, x_delete_at=soon)
    entry = worker.cache.store.table.find(KEY)
    assert entry.expires == int(soon)
    worker.cache.store.table.put(entry._replace(expires=int(time.time())))
    worker.get()
    assert asked(disks) == ["GET"]


@pytest.mark.parametrize("how", ["filter", "swift"])
@pytest.mark.parametrize("method", ["PUT", "GET"])
def test_objects_encrypted_below_the_cache_are_never_kept(worker, disks, tmp_path, how, method):
    if how == "filter":
        worker.protective = ("encryption",)
    else:
        keymaster(worker)
    if method == "PUT":
        worker.request("PUT", body=BODY)
    else:
        disks.objects[PATH] = Stored(BODY, {"Content-Type": "text/plain"}, "1700000000.00000")
        worker.get()
    assert worker.cache.store.table.find(KEY) is None
    assert [one for one in (tmp_path / "cache" / "objects").rglob("*") if one.is_file()] == []


def keymaster(worker):
    """Swift's keymaster to the right: it leaves its mark in the environment."""
    app = worker.app

    def marking(env, start_response):
        env["swift.callback.fetch_crypto_keys"] = object
        return app(env, start_response)

    worker.app = marking


def test_an_interrupted_upload_is_not_kept(worker, disks):
    assert worker.request("PUT", body=BODY, content_length="999999").code == 499
    assert worker.cache.store.table.find(KEY) is None
    answer = worker.start("PUT", body=BODY)
    assert worker.cache.store.table.find(KEY) is None
    list(answer.body)
    answer.body.close()
    assert worker.cache.store.table.find(KEY) is not None


@pytest.mark.parametrize("status", [401, 403, 404, 412, 422, 499, 500, 503])
def test_after_a_failed_upload_the_old_object_is_validated(worker, disks, status):
    fill(worker, disks)
    disks.status = status
    worker.request("PUT", body=b"new")
    disks.status = 0
    asked(disks)
    assert worker.get() == BODY
    assert asked(disks) == ["HEAD"]


def test_an_interrupted_download_is_not_kept(worker, disks):
    disks.objects[PATH] = Stored(b"x" * 100, {"Content-Type": "text/plain"}, "1700000000.00000")
    answer = worker.start("GET")
    answer.body.close()
    assert worker.cache.store.table.find(KEY) is None


def test_without_object_servers_errors_pass_through(worker, disks):
    fill(worker, disks)
    worker.cache.store.marks.mark_missed()
    disks.status = 503
    assert worker.request("GET").code == 503
    disks.status = 0
    assert worker.get() == BODY


def test_objects_beyond_the_size_limit_are_not_cached(disks, tmp_path):
    worker = Worker(disks, tmp_path, {"max_size": 100})
    worker.request("PUT", body=b"x" * 101)
    worker.get()
    worker.get()
    assert asked(disks) == ["PUT", "GET", "GET"]


def test_an_object_is_admitted_after_enough_requests(disks, tmp_path):
    worker = Worker(disks, tmp_path, {"admit": 3})
    disks.objects[PATH] = Stored(BODY, {"Content-Type": "text/plain"}, "1700000000.00000")
    for _ in range(5):
        assert worker.get() == BODY
    assert asked(disks) == ["GET"] * 3


def test_a_worker_buffers_no_more_than_its_limit(disks, tmp_path, monkeypatch):
    monkeypatch.setattr(node_cache, "BUFFER", 1000)
    worker = Worker(disks, tmp_path)
    worker.request("PUT", body=b"x" * 1001)
    assert worker.cache.store.table.find(KEY) is None
    worker.request("PUT", body=b"x" * 1000)
    assert worker.cache.store.table.find(KEY) is not None
    assert worker.cache.reserve(1000)


def test_a_restart_keeps_the_cache(worker, disks, tmp_path):
    fill(worker, disks)
    worker.cache.store.close()
    again = Worker(disks, tmp_path / "cache")
    assert again.get() == BODY
    assert asked(disks) == []


def test_unicode_and_reserved_object_names_are_cached(worker, disks):
    for path in ("/v1/AUTH_a/c/\u00c3\u00a4/b c", "/v1/AUTH_a/c/d/e"):
        worker.request("PUT", path, body=b"1")
        assert worker.get(path) == b"1"
    worker.request("PUT", "/v1/AUTH_a/c/d\0e", body=b"1")
    asked(disks)
    worker.get("/v1/AUTH_a/c/d\0e")
    assert asked(disks) == ["GET"]


def test_without_a_usable_folder_everything_passes(disks, tmp_path):
    (tmp_path / "file").touch()
    worker = Worker(disks, tmp_path / "file")
    assert worker.request("PUT", body=BODY).code == 201
    assert [worker.get(), worker.get()] == [BODY, BODY]
    assert asked(disks) == ["PUT", "GET", "GET"]


def test_a_worker_without_a_store_still_reports_writes(disks, tmp_path):
    other = Worker(disks, tmp_path)
    fill(other, disks)
    (tmp_path / "table").unlink()
    (tmp_path / "table").mkdir()
    worker = Worker(disks, tmp_path)
    assert worker.request("PUT", body=b"new").code == 201
    assert worker.get() == b"new"
    asked(disks)
    assert other.get() == b"new"
    assert asked(disks) == ["HEAD", "GET"]
