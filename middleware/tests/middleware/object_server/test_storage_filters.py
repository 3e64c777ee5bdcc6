"""Filters in an object server's pipeline: read-time filters with the same bytes as on the proxy, and visits."""

import json
import logging

import pytest
from tests.support.middleware.reads import Cut, Mark, Node, Upper

from sluice_core.describe import FILTER, PROXY, STORAGE_NODE, ActionInfo
from sluice_core.options import OptionError
from sluice_core.testing import assignment
from sluice_filters.api import Filter, FilterError, Stream
from sluice_filters.visits import Headers, Reply, Visit
from sluice_middleware.object_server import middleware
from sluice_middleware.proxy import read_filters
from sluice_middleware.swift.proxy_api import Request, Response
from sluice_middleware.testing import FixedPolicies, ProxyStack
from sluice_middleware.wsgi import sysmeta
from sluice_middleware.wsgi.worker_context import OPTIONS, WorkerContext

PATH = "/v1/AUTH_a/c/o.txt"
BODY = b"".join(b"line %d of the object\n" % n for n in range(2000))
LOCAL = "/sda1/7/AUTH_a/c/o.txt"


@pytest.fixture
def stand(tmp_path):
    Upper.hints.clear()
    made = ProxyStack(tmp_path, Upper, Mark, Cut)
    yield made
    assert made.all_closed(), "an answer was left open"


def put(stand, body=BODY, path=PATH, **headers):
    assert stand("PUT", path, body=body, Content_Type="text/plain", **headers).status_int == 201


@pytest.fixture
def node(stand, tmp_path):
    return Node(stand, tmp_path, Upper, Mark, Cut)


def there(keyword, **more):
    stage = {"mark": 100}.get(keyword, 200)
    return assignment(f"p.{keyword}", keyword=keyword, stage=stage, place=STORAGE_NODE, **more)


def here(keyword, **more):
    return assignment(f"p.{keyword}", keyword=keyword, stage={"mark": 100}.get(keyword, 200), place=PROXY, **more)


def test_a_storage_node_runs_offered_filters_and_marks_the_answer(stand, node):
    put(stand)
    stand.set_policies(there("upper"))
    answer = stand("GET", PATH)
    assert answer.body == BODY.upper() + b"THE END"
    assert node.ran
    assert not {"Content-Length", "Etag"} & set(node.answers[-1][1])
    assert "X-Backend-Sluice-Read" not in answer.headers
    assert len(Upper.hints) == 1


@pytest.mark.parametrize("wish", ["0+5", "700+44", "43000+5000"])
def test_the_bytes_are_the_same_at_both_places(stand, node, wish):
    put(stand)
    stand.set_policies(here("cut", params={"most": 40}), here("mark"))
    expected = stand("GET", PATH, X_Cut=wish)
    assert not node.ran
    stand.set_policies(there("cut", params={"most": 40}), there("mark"))
    answer = stand("GET", PATH, X_Cut=wish)
    assert node.ran
    assert (answer.body, answer.headers) == (expected.body, expected.headers)
    stand.set_policies(there("cut", params={"most": 40}), here("mark"))
    assert stand("GET", PATH, X_Cut=wish).body == expected.body
    assert node.ran


def test_a_filter_behind_one_that_runs_here_runs_here_too(stand, node):
    put(stand)
    stand.set_policies(here("upper"), there("mark"))
    assert stand("GET", PATH).body == b"mark:" + BODY.upper() + b"THE END"
    assert not node.ran


@pytest.mark.parametrize(
    "header",
    ["X-Static-Large-Object", "X-Object-Manifest", "X-Object-Sysmeta-Symlink-Target", "X-Object-Sysmeta-Ec-Frag-Index"],
)
def test_partial_objects_are_left_to_the_proxy(stand, node, header):
    put(stand)
    stand.swift.objects[PATH].headers[header] = "x"
    stand.set_policies(there("upper"))
    assert stand("GET", PATH).body == BODY.upper() + b"THE END"
    assert not node.ran


def test_what_the_proxy_transformed_is_left_to_the_proxy(stand, node):
    stand.set_policies(assignment(keyword="compression", stage=300))
    put(stand)
    stand.set_policies(there("upper"))
    assert stand("GET", PATH).body == BODY.upper() + b"THE END"
    stand.set_policies(there("cut"))
    assert stand("GET", PATH, X_Cut="30000+7").body == BODY[30000:30007] + b"."
    assert stand("GET", PATH, X_Cut="30000+7").body == BODY[30000:30007] + b"."
    assert not any(headers.get(sysmeta.READ) for _, headers in node.answers)


def test_fragments_of_another_policy_are_not_offered(stand, node):
    put(stand)
    stand.set_policies(there("upper"))
    info = {"status": 204, "read_acl": None, "write_acl": None, "storage_policy": "99"}
    assert stand("GET", PATH, env={"swift.infocache": {"container/AUTH_a/c": info}}).body.endswith(b"THE END")
    assert not node.ran
    assert "X-Backend-Sluice-Read" not in stand.swift.headers[-1]


@pytest.mark.parametrize("fault", ["missing", "version"])
def test_a_node_that_does_not_have_the_filter_leaves_it_to_the_proxy(stand, node, fault):
    put(stand)
    stand.set_policies(there("upper"))
    if fault == "missing":
        del node.context.filters["upper"]
    else:
        newer = ActionInfo(**{**{name: getattr(Upper.info, name) for name in Upper.info.__slots__}, "version": 2})
        node.context.filters["upper"] = type("Upper", (Upper,), {"info": newer})
    assert stand("GET", PATH).body == BODY.upper() + b"THE END"
    assert not node.ran


def test_an_invalid_read_request_is_400_from_a_storage_node(stand, node):
    put(stand)
    stand.set_policies(there("cut"))
    assert stand("GET", PATH, X_Cut="x").status_int == 400


def test_a_filter_that_fails_there_is_reported_by_the_proxy(stand, node, monkeypatch):
    put(stand)
    stand.set_policies(there("upper"))

    def fail(self, hint):
        raise FilterError("no luck today")

    monkeypatch.setattr(Upper, "reader", fail)
    answer = stand("GET", PATH)
    assert answer.status_int == 503
    assert b"no luck today" in answer.body


@pytest.mark.parametrize("value", ["bytes=100-", "bytes=0-5"])
def test_a_proxy_that_resumes_a_broken_answer_is_refused(stand, node, value):
    put(stand)
    wish = {"steps": [{"f": "upper", "v": 1, "p": {}}], "a": {}, "range": None}
    answer = Request.blank(
        "/sda1/7/AUTH_a/c/o.txt", headers={"Range": value, sysmeta.READ: json.dumps(wish)}
    ).get_response(node.middleware)
    assert answer.status_int == 409
    assert "resumed" in answer.headers[sysmeta.REFUSED]


@pytest.mark.parametrize(
    "text", ["{", "[]", "{}", '{"steps":1,"a":{},"range":null}', '{"steps":[],"a":1,"range":null}']
)
def test_an_unreadable_read_header_is_refused_with_409(stand, node, text):
    put(stand)
    answer = Request.blank("/sda1/7/AUTH_a/c/o.txt", headers={sysmeta.READ: text}).get_response(node.middleware)
    assert answer.status_int == 409
    assert answer.headers[sysmeta.REFUSED]


def test_other_methods_and_paths_pass_a_storage_node(stand, node):
    for method, path in [("REPLICATE", "/sda1/7/abc"), ("SSYNC", "/sda1/7"), ("GET", "/healthcheck"), ("PUT", "/a/b")]:
        request = Request.blank(path, method=method, headers={sysmeta.READ: "x"})
        passed = []
        node.middleware.app = lambda env, start, passed=passed: (
            passed.append(env[_READ]) or Response(status=200)(env, start)
        )
        assert request.get_response(node.middleware).status_int == 200
        assert passed == ["x"]


_READ = "HTTP_X_BACKEND_SLUICE_READ"


# -- request filters -------------------------------------------------------------------------------


class Guard(Filter):
    """A request filter whose visits the test defines."""

    info = ActionInfo("guard", FILTER, "x", places=(PROXY, STORAGE_NODE), stage=10, on_put=False, on_request=True)
    made = Visit
    calls = []

    def visit(self, call):
        self.calls.append(call)
        visit = self.made()
        visit.call = call
        return visit


@pytest.fixture
def guarded(stand, tmp_path):
    Guard.calls.clear()
    node = Node(stand, tmp_path, Guard)
    node.set_policies(FixedPolicies(assignment(keyword="guard", stage=10, place=STORAGE_NODE)))
    return node


def local(node, method="GET", body=None, **headers):
    names = {name.replace("_", "-"): value for name, value in headers.items()}
    response = Request.blank(LOCAL, method=method, body=body, headers=names).get_response(node.middleware)
    _ = response.body
    return response


def test_a_request_filter_on_a_storage_node_sees_every_hook(stand, guarded, monkeypatch):
    log = []

    class Telling(Visit):
        def request(self):
            log.append("request")

        def body_in(self):
            log.append("body in")
            return Stream()

        def response(self, reply):
            log.append(f"response {reply.code}")
            reply.headers["X-Seen"] = "yes"
            return reply

        def body_out(self, reply):
            log.append("body out")
            return Stream()

        def end(self, complete):
            log.append(f"end {complete}")

    monkeypatch.setattr(Guard, "made", Telling)
    assert local(guarded, "PUT", BODY).status_int == 201
    answer = local(guarded)
    assert (answer.body, answer.headers["X-Seen"]) == (BODY, "yes")
    assert log == [
        *("request", "body in", "response 201", "end True"),
        *("request", "response 200", "body out", "end True"),
    ]
    call = Guard.calls[0]
    assert (call.place, call.account, call.container, call.object) == ("storage_node", "AUTH_a", "c", "o.txt")
    assert call.size == len(BODY)
    assert call.authorize() is None


@pytest.mark.parametrize("header", ["X_Backend_Obj_Metadata_Footer", "X_Backend_Obj_Multipart_Mime_Boundary"])
def test_a_mime_enveloped_body_is_not_shown_to_filters(stand, guarded, monkeypatch, header):
    class Asked(Visit):
        def body_in(self):
            raise AssertionError("asked for a stream of an envelope")

    monkeypatch.setattr(Guard, "made", Asked)
    assert local(guarded, "PUT", BODY, **{header: "yes"}).status_int == 201


def test_fragments_and_the_requests_of_daemons_are_not_visited(stand, guarded):
    local(guarded, X_Backend_Storage_Policy_Index="99")
    request = Request.blank("/sda1/7/abc", method="REPLICATE")
    guarded.middleware.app = Response(status=200)
    request.get_response(guarded.middleware)
    assert Guard.calls == []


class Input:
    """``wsgi.input`` as the object server's, which can announce its support of footers."""

    def __init__(self, body):
        self.left = body
        self.announced = None

    def read(self, size=-1):
        data, self.left = self.left[:size], self.left[size:]
        return data

    def set_hundred_continue_response_headers(self, headers):
        self.announced = headers


@pytest.mark.parametrize("footers", [False, True])
def test_a_refused_upload_is_refused_after_its_body_so_that_swift_hears_it(stand, guarded, monkeypatch, footers):
    class Refusing(Visit):
        def request(self):
            raise FilterError("not at this hour")

    monkeypatch.setattr(Guard, "made", Refusing)
    source = Input(BODY)
    env = Request.blank(LOCAL, method="PUT").environ | {"wsgi.input": source, "CONTENT_LENGTH": str(len(BODY))}
    if footers:
        env["HTTP_X_BACKEND_OBJ_METADATA_FOOTER"] = "yes"
    answer = Request(env).get_response(guarded.middleware)
    assert answer.status == sysmeta.REFUSED_STATUS
    assert answer.headers[sysmeta.REFUSED] == "not at this hour"
    assert source.left == b""
    assert source.announced == ([("X-Obj-Metadata-Footer", "yes")] if footers else None)
    assert stand.swift.objects == {}


def test_a_reason_beyond_ascii_fits_a_header(stand, guarded, monkeypatch):
    class Refusing(Visit):
        def request(self):
            raise FilterError("nicht für `日`\nheute")

    monkeypatch.setattr(Guard, "made", Refusing)
    assert local(guarded).headers[sysmeta.REFUSED] == r"nicht f\xfcr `\u65e5` heute"


def test_a_visits_own_requests_reach_its_own_object_here(stand, guarded, monkeypatch):
    stand.swift.objects.clear()
    put(stand)
    replies = []

    class Asking(Visit):
        def request(self):
            replies.append(self.call.send("GET"))
            replies.append(self.call.send("GET", ("AUTH_a", "c", "other")))

    monkeypatch.setattr(Guard, "made", Asking)
    local(guarded)
    assert b"".join(replies[0].body) == BODY
    replies[0].body.close()
    assert replies[1].code == 501


def test_a_visit_may_answer_instead_of_the_object_server(stand, guarded, monkeypatch):
    class Answering(Visit):
        def request(self):
            return Reply("200 OK", Headers({"X-By": "guard"}), [b"mine"])

    monkeypatch.setattr(Guard, "made", Answering)
    answer = local(guarded)
    assert (answer.body, answer.headers["X-By"]) == (b"mine", "guard")
    assert stand.swift.requests == []


def test_a_fault_of_a_filter_is_logged_and_no_5xx(stand, guarded, monkeypatch, caplog):
    class Broken(Visit):
        def request(self):
            return 1 / 0

    monkeypatch.setattr(Guard, "made", Broken)
    with caplog.at_level(logging.ERROR):
        assert local(guarded).status_int == 409
    assert any(record.exc_info for record in caplog.records)


@pytest.mark.parametrize(
    ("given", "key_file"),
    [({}, ""), ({"sluice_key_file": "/k"}, "/k"), ({"sluice_key_file": "/k", "key_file": "/l"}, "/l")],
)
def test_key_options_of_the_disk_files_are_shared(given, key_file, monkeypatch):
    seen = {}
    monkeypatch.setattr(middleware, "WorkerContext", lambda options, logger: seen.update(options))
    monkeypatch.setattr(middleware, "open_logger", lambda *_, **__: None)  # it would open a socket to syslog
    common = {name: value for name, value in given.items() if name.startswith("sluice_")}
    own = {name: value for name, value in given.items() if name not in common}
    middleware.filter_factory({"devices": "/srv", **common}, snapshot_dir="/s", **own)
    assert (seen["key_file"], seen["snapshot_dir"]) == (key_file, "/s")


@pytest.mark.parametrize("factory", [middleware.filter_factory, read_filters.filter_factory])
def test_unknown_options_are_refused(factory):
    with pytest.raises(OptionError, match="did you mean `snapshot_dir`"):
        factory({}, snapshot_dri="/x")


def test_an_unreadable_snapshot_is_logged_once(tmp_path, caplog):
    options = {one.name: one.default for one in OPTIONS} | {"snapshot_dir": str(tmp_path / "none")}
    context = WorkerContext(options, logging.getLogger("sluice.test"))
    with caplog.at_level(logging.WARNING):
        context.refresh()
        context.refresh()
    assert [record.levelname for record in caplog.records] == ["WARNING"]
