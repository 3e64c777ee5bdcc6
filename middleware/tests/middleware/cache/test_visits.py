"""What a client gets from a proxy that caches, and what the disks are asked for meanwhile."""

import time

import pytest
from tests.support.middleware.cache import PATH, Disks, Stored, Worker

from sluice_core.cache.write_marks import digest

BODY = bytes(range(256)) * 40
KEY = digest(b"AUTH_a/c/o")


@pytest.fixture
def disks():
    return Disks()


@pytest.fixture
def worker(disks, tmp_path):
    return Worker(disks, tmp_path / "cache")


def asked(disks):
    """What the disks were asked for since the last time."""
    seen = [method for method, _ in disks.seen]
    disks.seen.clear()
    return seen


def fill(worker, disks, body=BODY, **headers):
    """An object that was written, read, and is kept for sure."""
    assert worker.request("PUT", body=body, **headers).code == 201
    assert worker.get() == body
    asked(disks)
    assert worker.get() == body
    assert asked(disks) == []


def test_an_object_that_was_read_is_not_asked_for_again(worker, disks):
    disks.objects[PATH] = Stored(BODY, {"Content-Type": "text/plain"}, "1700000000.00000")
    assert [worker.get() for _ in range(3)] == [BODY] * 3
    assert asked(disks) == ["GET"]


def test_an_object_that_was_written_needs_its_headers_only(worker, disks):
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
def test_a_hit_is_answered_as_the_disks_would(worker, disks, method, headers, body):
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
    """Headers and body, with the one random thing in them replaced."""
    kind = reply.headers.get("Content-Type")
    body = b"".join(reply.body)
    if kind and "boundary=" in kind:
        boundary = kind.rpartition("boundary=")[2]
        return {**reply.headers, "Content-Type": "multipart"}, body.replace(boundary.encode(), b"boundary")
    return dict(reply.headers), body


@pytest.mark.parametrize("headers", [{"if_none_match": "*"}, {"range": "bytes=99999-"}, {"if_match": "nothing"}])
def test_what_swift_makes_up_for_fragments_it_is_asked_for(worker, disks, headers):
    fill(worker, disks, x_backend_fragments="{}")
    worker.request("GET", **headers)
    assert asked(disks) == ["GET"]
    worker.request("GET", range="bytes=1-2")
    assert asked(disks) == []


@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_who_may_not_read_it_is_refused_by_swift(worker, disks, method):
    fill(worker, disks)
    worker.allowed = False
    worker.request(method)
    assert asked(disks) == [method]


def test_objects_of_a_container_that_is_gone_are_asked_for(worker, disks):
    fill(worker, disks)
    worker.cache._there.clear()
    worker.container_status = 404
    worker.get()
    assert asked(disks) == ["GET"]


@pytest.mark.parametrize("headers", [{"x_newest": "true"}, {"origin": "http://there"}])
def test_some_requests_go_past_it(worker, disks, headers):
    fill(worker, disks)
    worker.request("GET", **headers)
    assert asked(disks) == ["GET"]


@pytest.mark.parametrize("method", ["PUT", "POST", "DELETE"])
def test_a_write_through_this_node_is_seen_at_once(worker, disks, tmp_path, method):
    other = Worker(disks, tmp_path / "cache")
    fill(worker, disks)
    other.request(method, body=b"new" if method == "PUT" else b"", x_object_meta_a="b")
    reply = worker.request("GET")
    wanted = {"PUT": (200, b"new"), "POST": (200, BODY), "DELETE": (404, None)}[method]
    assert reply.code == wanted[0]
    if reply.code == 200:
        assert b"".join(reply.body) == wanted[1]
        assert reply.headers["X-Object-Meta-A"] == "b"


def test_a_post_costs_a_head_and_no_body(worker, disks):
    fill(worker, disks)
    worker.request("POST", x_object_meta_a="b")
    asked(disks)
    for _ in range(2):
        reply = worker.request("GET")
        assert reply.headers["X-Object-Meta-A"] == "b"
    assert asked(disks) == ["HEAD"]


def test_headers_that_have_outgrown_their_room_are_kept(worker, disks):
    fill(worker, disks)
    worker.request("POST", x_object_meta_a="b" * 3000)
    assert [len(worker.request("GET").headers["X-Object-Meta-A"]) for _ in range(2)] == [3000] * 2
    assert worker.get() == BODY
    assert asked(disks) == ["POST", "HEAD"]


def test_in_strict_mode_all_replicas_are_asked_about_each_hit(disks, tmp_path):
    worker = Worker(disks, tmp_path, {"mode": "strict"})
    disks.objects[PATH] = Stored(BODY, {"Content-Type": "text/plain"}, "1700000000.00000")
    assert [worker.get() for _ in range(3)] == [BODY] * 3
    assert asked(disks) == ["GET", "HEAD", "HEAD"]
    disks.asleep[PATH] = disks.objects[PATH]
    disks.objects[PATH] = Stored(b"new", {"Content-Type": "text/plain"}, "1700000009.00000")  # by whom, nobody told
    seen = worker.request("HEAD", x_newest="true").headers["Content-Length"]
    assert seen == "3"
    disks.asleep.clear()
    assert worker.get() == b"new"


def test_what_nobody_vouches_for_is_asked_about(disks, tmp_path):
    worker = Worker(disks, tmp_path, cache_alone="false")
    disks.objects[PATH] = Stored(BODY, {"Content-Type": "text/plain"}, "1700000000.00000")
    worker.get()
    worker.get()
    assert asked(disks) == ["GET", "HEAD"]
    worker.cache.store.marks.trust(time.monotonic_ns() + 10**12)
    worker.get()
    assert asked(disks) == []
    disks.objects[PATH] = Stored(b"new", {"Content-Type": "text/plain"}, "1700000009.00000")
    worker.cache.store.marks.trust(0)
    assert worker.get() == b"new"


def test_after_missed_writes_each_object_is_compared_once(worker, disks):
    fill(worker, disks)
    worker.cache.store.marks.missed()
    assert [worker.get(), worker.get()] == [BODY, BODY]
    assert asked(disks) == ["HEAD"]
    disks.objects[PATH] = Stored(b"new", {"Content-Type": "text/plain"}, "1700000099.00000")
    worker.cache.store.marks.missed()
    assert [worker.get(), worker.get()] == [b"new", b"new"]
    assert asked(disks) == ["HEAD", "GET"]


def test_after_its_time_an_object_is_compared(disks, tmp_path):
    worker = Worker(disks, tmp_path, {"ttl": 0.0})
    disks.objects[PATH] = Stored(BODY, {"Content-Type": "text/plain"}, "1700000000.00000")
    assert [worker.get(), worker.get()] == [BODY, BODY]
    assert asked(disks) == ["GET", "HEAD"]


def test_a_replica_that_slept_through_a_write_is_not_kept(worker, disks):
    worker.request("PUT", body=b"old")
    disks.asleep[PATH] = disks.objects[PATH]
    worker.request("PUT", body=b"new")
    assert worker.get() in (b"old", b"new")  # Swift's own answer, whichever replica gave it
    disks.asleep.clear()
    assert [worker.get() for _ in range(2)] == [b"new"] * 2


def test_a_write_during_a_read_wins(worker, disks):
    disks.objects[PATH] = Stored(b"old", {"Content-Type": "text/plain"}, "1700000000.00000")
    writer = Worker(disks, worker.cache._options["cache_dir"])
    reading = worker.start("GET")
    writer.request("PUT", body=b"new")
    assert b"".join(reading.body) == b"old"
    reading.body.close()
    assert worker.get() == b"new"


def test_a_write_that_another_node_has_begun_keeps_an_object_in_doubt(worker, disks):
    fill(worker, disks)
    worker.cache.store.marks.begin(KEY)
    assert [worker.get(), worker.get()] == [BODY, BODY]
    assert asked(disks) == ["HEAD", "HEAD"]
    worker.cache.store.marks.end(KEY, 1)
    worker.get()
    worker.get()
    assert asked(disks) == ["HEAD"]


def test_a_writer_whose_clock_is_ahead_is_believed(worker, disks):
    fill(worker, disks)
    worker.request("PUT", body=b"ahead", x_timestamp="1900000000.00000")
    assert worker.get() == b"ahead"
    asked(disks)
    assert worker.get() == b"ahead"
    assert asked(disks) == []


def test_an_object_that_expires_is_asked_for_from_then_on(worker, disks):
    soon = str(int(time.time()) + 1000)
    fill(worker, disks, x_delete_at=soon)
    entry = worker.cache.store.table.find(KEY)
    assert entry.expires == int(soon)
    worker.cache.store.table.put(entry._replace(expires=int(time.time())))
    worker.get()
    assert asked(disks) == ["GET"]


@pytest.mark.parametrize("how", ["filter", "swift"])
@pytest.mark.parametrize("method", ["PUT", "GET"])
def test_what_is_encrypted_below_is_never_kept(worker, disks, tmp_path, how, method):
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
    """Swift's keymaster to the right of us: it leaves its mark in the environment."""
    app = worker.app

    def marking(env, start_response):
        env["swift.callback.fetch_crypto_keys"] = object
        return app(env, start_response)

    worker.app = marking


def test_an_upload_that_was_cut_is_not_kept(worker, disks):
    assert worker.request("PUT", body=BODY, content_length="999999").code == 499
    assert worker.cache.store.table.find(KEY) is None
    answer = worker.start("PUT", body=BODY)
    assert worker.cache.store.table.find(KEY) is None
    list(answer.body)
    answer.body.close()
    assert worker.cache.store.table.find(KEY) is not None


@pytest.mark.parametrize("status", [401, 403, 404, 412, 422, 499, 500, 503])
def test_an_upload_that_failed_is_not_kept_and_the_old_object_is_compared(worker, disks, status):
    fill(worker, disks)
    disks.status = status
    worker.request("PUT", body=b"new")
    disks.status = 0
    asked(disks)
    assert worker.get() == BODY
    assert asked(disks) == ["HEAD"]


def test_a_download_that_was_cut_is_not_kept(worker, disks):
    disks.objects[PATH] = Stored(b"x" * 100, {"Content-Type": "text/plain"}, "1700000000.00000")
    answer = worker.start("GET")
    answer.body.close()
    assert worker.cache.store.table.find(KEY) is None


def test_when_the_disks_are_away_nothing_is_made_up(worker, disks):
    fill(worker, disks)
    worker.cache.store.marks.missed()
    disks.status = 503
    assert worker.request("GET").code == 503
    disks.status = 0
    assert worker.get() == BODY


def test_larger_objects_than_wanted_pass(disks, tmp_path):
    worker = Worker(disks, tmp_path, {"max_size": 100})
    worker.request("PUT", body=b"x" * 101)
    worker.get()
    worker.get()
    assert asked(disks) == ["PUT", "GET", "GET"]


def test_an_object_is_admitted_when_it_was_asked_for_often_enough(disks, tmp_path):
    worker = Worker(disks, tmp_path, {"admit": 3})
    disks.objects[PATH] = Stored(BODY, {"Content-Type": "text/plain"}, "1700000000.00000")
    for _ in range(5):
        assert worker.get() == BODY
    assert asked(disks) == ["GET"] * 3


def test_a_worker_collects_no_more_than_its_buffer(disks, tmp_path):
    worker = Worker(disks, tmp_path, cache_buffer="1000")
    worker.request("PUT", body=b"x" * 1001)
    assert worker.cache.store.table.find(KEY) is None
    worker.request("PUT", body=b"x" * 1000)
    assert worker.cache.store.table.find(KEY) is not None
    assert worker.cache.reserve(1000)


def test_a_restart_finds_everything_again(worker, disks, tmp_path):
    fill(worker, disks)
    worker.cache.store.close()
    again = Worker(disks, tmp_path / "cache")
    assert again.get() == BODY
    assert asked(disks) == []


def test_names_in_any_alphabet_and_internal_ones(worker, disks):
    for path in ("/v1/AUTH_a/c/\u00c3\u00a4/b c", "/v1/AUTH_a/c/d/e"):
        worker.request("PUT", path, body=b"1")
        assert worker.get(path) == b"1"
    worker.request("PUT", "/v1/AUTH_a/c/d\0e", body=b"1")
    asked(disks)
    worker.get("/v1/AUTH_a/c/d\0e")
    assert asked(disks) == ["GET"]


def test_without_a_place_for_it_everything_passes(disks, tmp_path):
    (tmp_path / "file").touch()
    worker = Worker(disks, tmp_path / "file")
    assert worker.request("PUT", body=BODY).code == 201
    assert [worker.get(), worker.get()] == [BODY, BODY]
    assert asked(disks) == ["PUT", "GET", "GET"]


def test_writes_are_told_also_by_a_worker_that_cannot_keep_anything(disks, tmp_path):
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
