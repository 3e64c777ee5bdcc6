"""Sluice's two request filters, against a Swift of a few lines."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluice_filters.api import BadParameter, FilterError
from sluice_filters.requests.delete_guard import DeleteGuard, copy_headers, make_bin_name
from sluice_filters.requests.tagging import Tagging
from sluice_filters.visits import Call, Headers, Reply

OBJECT = ("AUTH_a", "c", "o")


class Body:
    """A body that records whether it was closed."""

    def __init__(self, data):
        self.data = data
        self.closed = False

    def __iter__(self):
        return iter([self.data])

    def close(self):
        self.closed = True


class Store:
    """The storage for a call's own requests: objects by path, containers, and prepared answers."""

    def __init__(self):
        self.objects = {
            OBJECT: (
                b"stored bytes",
                {
                    "Content-Type": "text/plain",
                    "Etag": "abc",
                    "X-Object-Meta-A": "b",
                    "X-Timestamp": "1700000000.99999",
                },
            )
        }
        self.containers = {"c"}
        self.dictated = {}
        self.never_deletes = False
        self.log = []
        self.bodies = []

    def __call__(self, method, path=None, headers=None, body=None, query="", stored=False):
        path = path or OBJECT
        self.log.append((method, path, stored))
        try:
            status, data, found = self._answer(method, path, headers or {}, body)
        finally:
            if body is not None:
                body.close()
        self.bodies.append(Body(data))
        return Reply(status, Headers(found), self.bodies[-1])

    def _answer(self, method, path, headers, body):
        dictated = self.dictated.get((method, len(path)), [])
        if dictated:
            return dictated.pop(0), b"", {}
        if len(path) == 2:
            self.containers.add(path[1])
            return "201 Created", b"", {}
        if method == "GET":
            if path not in self.objects:
                return "404 Not Found", b"", {}
            return ("200 OK", *self.objects[path])
        if method == "DELETE":
            if not self.never_deletes:
                del self.objects[path]
            return "409 Conflict" if self.never_deletes else "204 No Content", b"", {}
        if path[1] not in self.containers:
            return "404 Not Found", b"", {}
        self.objects[path] = (b"".join(body), dict(headers))
        return "201 Created", b"", {}


def call(method="DELETE", store=None, target=OBJECT, headers=None, denial=None):
    given = Headers(headers or {})
    return Call(
        place="proxy",
        method=method,
        account=target[0],
        container=target[1],
        object=target[2],
        read_headers=lambda: given,
        query="",
        size=None,
        content_type=None,
        authorize=lambda: denial,
        send=store,
        environ={},
    )


@pytest.fixture
def store():
    made = Store()
    yield made
    assert all(body.closed for body in made.bodies)


def delete(store, params=None, **more):
    visit = DeleteGuard(params).visit(call(store=store, **more))
    return visit and (visit.request(), visit)


def kept(store, container="deleted"):
    return [(path, stored) for path, stored in store.objects.items() if path[1] == container]


def test_an_object_is_kept_as_it_is_stored_with_its_headers(store):
    store.objects[OBJECT][1]["X-Object-Sysmeta-Sluice-Chain"] = "[...]"
    reply, _ = delete(store, {"keep": 3600.0, "bin": "trash"})
    assert reply is None
    [((account, _, name), (data, headers))] = kept(store, "trash")
    assert (account, name[:4], data) == ("AUTH_a", "c/o/", b"stored bytes")
    assert headers == {
        "Content-Type": "text/plain",
        "Etag": "abc",
        "X-Object-Meta-A": "b",
        "X-Object-Sysmeta-Sluice-Chain": "[...]",
        "X-Delete-After": "3600",
    }
    assert all(stored for method, path, stored in store.log if len(path) == 3)


def test_the_deletion_is_dated_right_after_what_was_kept(store):
    _, visit = delete(store)
    assert visit._call.headers["X-Timestamp"] == "1700000001.00000"
    assert visit.response(Reply("204 No Content", Headers(), [])).code == 204
    assert len(kept(store)) == 1


def test_where_there_is_nothing_to_keep_swift_dates_the_deletion(store):
    store.objects.clear()
    _, visit = delete(store)
    assert "X-Timestamp" not in visit._call.headers
    assert visit.response(Reply("404 Not Found", Headers(), [])).code == 404


def test_an_object_without_a_date_is_not_deleted(store):
    store.objects[OBJECT][1]["X-Timestamp"] = "yesterday"
    with pytest.raises(FilterError, match="yesterday"):
        delete(store)


def test_an_object_written_meanwhile_is_kept_and_deleted_too(store):
    _, visit = delete(store)
    store.objects[OBJECT] = (b"written meanwhile", dict(store.objects[OBJECT][1]))
    reply = visit.response(Reply("409 Conflict", Headers(), []))
    assert reply.code == 204
    reply.body.close()
    assert sorted(data for _, (data, _) in kept(store)) == [b"stored bytes", b"written meanwhile"]
    assert OBJECT not in store.objects


def test_an_object_that_somebody_else_deleted_meanwhile_is_not_there(store):
    _, visit = delete(store)
    store.objects.pop(OBJECT)
    store.dictated["DELETE", 3] = ["404 Not Found"]
    reply = visit.response(Reply("409 Conflict", Headers(), []))
    reply.body.close()
    assert reply.code == 404
    assert len(kept(store)) == 1


def test_an_object_that_is_written_all_the_time_is_a_conflict_in_the_end(store):
    _, visit = delete(store)
    store.never_deletes = True
    reply = visit.response(Reply("409 Conflict", Headers(), []))
    reply.body.close()
    assert reply.code == 409
    assert OBJECT in store.objects


def test_a_deletion_that_another_cluster_dated_stays_so(store):
    _, visit = delete(store, headers={"X-Timestamp": "0000000001.00000"})
    assert visit._call.headers["X-Timestamp"] == "0000000001.00000"
    assert visit.response(Reply("409 Conflict", Headers(), [])).code == 409


def test_the_bin_is_made_when_it_is_first_needed(store):
    delete(store)
    assert [(method, len(path)) for method, path, _ in store.log] == [
        ("GET", 3),
        ("PUT", 3),
        ("PUT", 2),
        ("GET", 3),
        ("PUT", 3),
    ]
    store.log.clear()
    delete(store)
    assert [method for method, _, _ in store.log] == ["GET", "PUT"]


@pytest.mark.parametrize(
    "more",
    [
        {"method": "GET"},
        {"method": "PUT"},
        {"method": "POST"},
        {"method": "HEAD"},
        {"target": ("AUTH_a", "deleted", "c/o/1")},
        {"headers": {"X-If-Delete-At": "123"}},
    ],
)
def test_other_requests_are_of_no_interest(store, more):
    assert delete(store, **more) is None


def test_missing_objects_and_denials_are_answered_by_swift(store):
    reply, _ = delete(store, denial=Reply("403 Forbidden", Headers(), Body(b"no")))
    assert reply is None
    assert store.log == []
    store.objects.clear()
    reply, _ = delete(store)
    assert reply is None
    assert kept(store) == []


@pytest.mark.parametrize(
    ("where", "statuses", "reason"),
    [
        (("GET", 3), ["503 Unavailable"], "cannot be read for keeping: 503"),
        (("PUT", 3), ["507 Full"], "cannot be kept: 507"),
        (("PUT", 3), ["404 Not Found", "404 Not Found"], "`deleted` is not there"),
        (("PUT", 3), ["404 Not Found", "413 Too Large"], "cannot be kept: 413"),
        (("PUT", 2), ["403 Forbidden"], "`deleted` cannot be made: 403"),
    ],
)
def test_an_object_that_cannot_be_kept_is_not_deleted(store, where, statuses, reason):
    store.dictated[where] = list(statuses)
    with pytest.raises(FilterError, match=reason):
        delete(store)


def test_a_large_objects_manifest_keeps_the_size_that_listings_show():
    headers = Headers({"Content-Type": "video/x", "X-Static-Large-Object": "True", "X-Object-Sysmeta-Slo-Size": "77"})
    found = copy_headers(headers)
    assert found["Content-Type"] == "video/x;swift_bytes=77"
    assert found["X-Static-Large-Object"] == "True"


def test_backend_headers_are_not_kept():
    headers = Headers({"X-Object-Sysmeta-Ec-Etag": "x", "X-Timestamp": "1", "Last-Modified": "x", "X-Delete-At": "9"})
    assert copy_headers(headers) == {}


@given(st.text(min_size=1), st.text(min_size=1))
def test_a_name_in_the_bin_is_never_too_long_and_has_no_zero_bytes(container, name):
    for longer in (1, 400):
        found = make_bin_name(container, name * longer, 1234.5)
        assert len(found.encode("utf-8", "surrogateescape")) <= 1024
        assert "\0" not in found
        assert found.endswith("/0000001234.500000")


def test_names_that_were_cut_stay_apart():
    names = {make_bin_name("c", "x" * 2000 + tail, 1.0) for tail in ("a", "b", "c")}
    assert len(names) == 3


@pytest.mark.parametrize("name", ["", "a/b", "x" * 257])
def test_a_bin_that_is_no_containers_name_is_refused(name):
    with pytest.raises(BadParameter, match="`bin` is"):
        DeleteGuard({"bin": name})


@pytest.mark.parametrize("method", ["PUT", "POST"])
@pytest.mark.parametrize(
    ("overwrite", "sent", "expected"),
    [(True, {}, "finance"), (True, {"X-Object-Meta-Dept": "x"}, "finance"), (False, {"x-object-meta-DEPT": "x"}, "x")],
)
def test_a_tag_is_set_on_what_is_written(method, overwrite, sent, expected):
    asked = call(method, headers=sent)
    visit = Tagging({"name": "dept", "value": "finance", "overwrite": overwrite}).visit(asked)
    assert visit.request() is None
    assert asked.headers["X-Object-Meta-Dept"] == expected


@pytest.mark.parametrize("method", ["GET", "HEAD", "DELETE"])
def test_requests_that_do_not_write_are_not_tagged(method):
    assert Tagging({"name": "dept", "value": "finance"}).visit(call(method)) is None


def test_a_value_beyond_ascii_goes_over_the_wire_as_utf_8():
    asked = call("PUT")
    Tagging({"name": "dept", "value": "Züri"}).visit(asked).request()
    assert asked.headers["X-Object-Meta-Dept"].encode("latin-1").decode() == "Züri"


@pytest.mark.parametrize(
    "params",
    [
        {},
        {"name": "a"},
        {"value": "a"},
        {"name": "", "value": "a"},
        {"name": "a_b", "value": "a"},
        {"name": "é", "value": "a"},
        {"name": "x" * 101, "value": "a"},
        {"name": "a", "value": " "},
        {"name": "a", "value": "x\r\ny"},
        {"name": "a", "value": "é" * 129},
    ],
)
def test_a_tag_that_no_header_takes_is_refused(params):
    with pytest.raises(BadParameter):
        Tagging(params)
