"""New content of derived objects: clients' uploads meanwhile win against it, and clients see its time."""

import hashlib
import socket
from contextlib import contextmanager
from email.utils import formatdate, parsedate_to_datetime

import pytest
from tests.support.cluster.motifs import concat, contract, put
from tests.support.cluster.people import s3_keys
from tests.support.cluster.s3_differential import client_of

pytestmark = pytest.mark.usefixtures("leases")

CONTAINER = "new-content"
OLD, NEW = b"old.", b"new!"  # of one length: only ETag and time differ


class SlowUpload:
    """A PUT that Swift has started, and whose body :meth:`finish` sends."""

    def __init__(self, swift, path, connection):
        self._connection = connection
        head = (
            f"PUT {swift.account}/{path} HTTP/1.1\r\nHost: sluice\r\nX-Auth-Token: {swift.token}\r\n"
            "Transfer-Encoding: chunked\r\nExpect: 100-continue\r\n\r\n"
        )
        connection.sendall(head.encode())
        self._answers = connection.makefile("rb")
        assert self._answers.readline().split()[1] == b"100"  # the storage nodes wait for the body
        assert self._answers.readline() == b"\r\n"

    def finish(self, body):
        """Send the body; return the status."""
        self._connection.sendall(b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body))
        return int(self._answers.readline().split()[1])


@contextmanager
def slow_upload(swift, path):
    host, port = swift.address.split(":")
    with socket.create_connection((host, int(port)), timeout=60) as connection:
        yield SlowUpload(swift, path, connection)


@pytest.fixture(scope="module")
def s3(cluster):
    client = client_of(cluster.proxy_url, *s3_keys(cluster, "test:tester"))
    client.create_bucket(Bucket=CONTAINER)
    yield client
    client.close()


@pytest.fixture
def derived(motifs, swift, s3):
    """The path of an object that was made from its source."""
    put(swift, f"{CONTAINER}/source", OLD)
    put(swift, f"{CONTAINER}/d", OLD, x_object_motif=concat(f"{CONTAINER}/source"))
    return f"{CONTAINER}/d"


def row(swift, path):
    container, name = path.split("/")
    return next(one for one in swift.listing(container) if one["name"] == name)


def modified(answer):
    return parsedate_to_datetime(answer.headers["last-modified"]).timestamp()


def after(seconds):
    return formatdate(seconds, usegmt=True)


def wait_for_another_second(swift, eventually):
    """Times of HTTP are whole seconds: wait until the present time differs from that of the stored object."""
    written = modified(put(swift, f"{CONTAINER}/clock"))
    eventually(lambda: modified(put(swift, f"{CONTAINER}/clock")) > written + 1)


@pytest.mark.parametrize("contracted", [False, True], ids=["stale", "contracted"])
def test_an_upload_that_began_before_an_object_was_made_anew_wins(motifs, swift, derived, contracted):
    if contracted:
        contract(motifs, derived)
    with slow_upload(swift, derived) as upload:
        put(swift, f"{CONTAINER}/source", NEW)
        assert swift.request("GET", derived).body == NEW
        assert swift.request("GET", derived, if_match=hashlib.md5(NEW).hexdigest()).status == 200  # it is stored
        assert upload.finish(b"a client's own") == 201
    assert swift.request("GET", derived).body == b"a client's own"
    assert "x-sluice-stale" not in swift.request("HEAD", derived).headers
    assert row(swift, derived)["hash"] == hashlib.md5(b"a client's own").hexdigest()


def test_new_content_shows_in_head_and_listing(motifs, swift, s3, derived, eventually):
    before = swift.request("HEAD", derived), row(swift, derived), s3.list_objects_v2(Bucket=CONTAINER, Prefix="d")
    wait_for_another_second(swift, eventually)
    put(swift, f"{CONTAINER}/source", NEW)
    assert swift.request("GET", derived).body == NEW
    etag = hashlib.md5(NEW).hexdigest()
    eventually(lambda: swift.request("HEAD", derived).headers["etag"] == etag)  # it may be read before it is stored
    for shown in ("made", "contracted", "expanded"):
        if shown == "contracted":
            contract(motifs, derived)
        head = swift.request("HEAD", derived)
        listed = s3.list_objects_v2(Bucket=CONTAINER, Prefix="d")["Contents"][0]
        assert head.headers["etag"] == etag
        assert modified(head) > modified(before[0])
        assert float(head.headers["x-timestamp"]) > float(before[0].headers["x-timestamp"])
        eventually(lambda: row(swift, derived)["hash"] == etag)
        assert row(swift, derived)["last_modified"] > before[1]["last_modified"]
        assert listed["LastModified"] > before[2]["Contents"][0]["LastModified"]
        got = swift.request("GET", derived)
        assert (got.body, got.headers["last-modified"]) == (NEW, head.headers["last-modified"])
        assert not [name for name in got.headers if "sluice" in name or "override" in name]
    listed_at = row(swift, derived)["last_modified"]
    assert swift.request("POST", derived, x_object_meta_colour="blue").status == 202
    posted = swift.request("HEAD", derived)
    assert float(posted.headers["x-timestamp"]) > float(head.headers["x-timestamp"])
    eventually(lambda: row(swift, derived)["last_modified"] > listed_at)


@pytest.mark.parametrize("contracted", [False, True], ids=["made", "contracted"])
def test_conditions_are_judged_by_the_time_of_new_content(motifs, swift, derived, contracted, eventually):
    old = modified(swift.request("HEAD", derived))
    wait_for_another_second(swift, eventually)
    put(swift, f"{CONTAINER}/source", NEW)
    assert swift.request("GET", derived).body == NEW
    etag = hashlib.md5(NEW).hexdigest()
    new = modified(swift.request("GET", derived, if_match=etag))
    if contracted:
        contract(motifs, derived)
    for method in ("HEAD", "GET"):

        def ask(method=method, **headers):
            answer = swift.request(method, derived, **headers)
            assert modified(answer) == new
            assert answer.body == (NEW if answer.status == 200 and method == "GET" else b"")
            return answer.status

        assert ask(if_modified_since=after(new)) == 304
        assert ask(if_modified_since=after(old)) == 200
        assert ask(if_modified_since=after(old), if_none_match=etag) == 304
        assert ask(if_unmodified_since=after(old)) == 412
        assert ask(if_unmodified_since=after(new)) == 200
        assert ask(if_unmodified_since=after(old), if_none_match=etag) == 304
        assert ask(if_unmodified_since=after(new), if_match="another") == 412
    assert swift.request("GET", derived, range="bytes=0-1", if_unmodified_since=after(old)).status == 412
    ranged = swift.request("GET", derived, range="bytes=0-1", if_unmodified_since=after(new))
    assert (ranged.status, ranged.body) == (206, NEW[:2])
    copied = swift.request("COPY", derived, destination=f"{CONTAINER}/copy")
    assert copied.headers["x-copied-from-last-modified"] == after(new)


def test_what_is_derived_from_new_content_is_made_anew(motifs, swift, derived):
    put(swift, f"{CONTAINER}/over", OLD, x_object_motif=concat(derived))
    for content in (NEW, OLD, NEW):
        put(swift, f"{CONTAINER}/source", content)
        assert swift.request("GET", derived).body == content
        assert swift.request("GET", f"{CONTAINER}/over").body == content
        contract(motifs, derived)
        contract(motifs, f"{CONTAINER}/over")
        assert swift.request("GET", f"{CONTAINER}/over").body == content


def test_an_object_is_out_of_date_if_it_was_made_from_older_versions(motifs, swift, api, derived, eventually):
    made_of = f"concat; of=AUTH_test/{CONTAINER}/source; versions="
    was = put(swift, f"{CONTAINER}/source", OLD).headers["etag"]
    late = f"{CONTAINER}/late"
    put(swift, late, OLD, x_object_motif=made_of + was)
    assert "x-sluice-stale" not in swift.request("HEAD", late).headers
    now = put(swift, f"{CONTAINER}/source", NEW).headers["etag"]
    put(swift, late, OLD, x_object_motif=made_of + was)
    assert swift.request("HEAD", late).headers["x-sluice-stale"] == "true"
    assert swift.request("GET", late).body == NEW
    eventually(api.motif_templates)
    for etag, content in ((now, OLD), (was, NEW)):  # the client's value counts
        put(swift, late, OLD)
        params = {"of": f"AUTH_test/{CONTAINER}/source", "versions": etag}
        api.attach_motif("AUTH_test", CONTAINER, "late", "concat", params)
        assert swift.request("GET", late).body == content


@pytest.mark.parametrize(
    ("motif", "reason"),
    [
        ("concat; of={source}; versions=4", b"`versions` has `4`, expected the ETag of each source, between commas"),
        ("concat; of={source},{source}; versions={etag}", b"`versions` has 1 ETags, expected 2, one for each source"),
        ("duplicate_of; source={source}; versions={etag}", b"template `duplicate_of` takes no `versions`"),
    ],
)
def test_versions_that_do_not_fit_the_sources_are_refused(swift, derived, motif, reason):
    given = motif.format(source=f"AUTH_test/{CONTAINER}/source", etag=hashlib.md5(OLD).hexdigest())
    for method in ("PUT", "POST"):
        refused = swift.request(method, derived, x_object_motif=given)
        assert (refused.status, reason in refused.body) == (400, True), refused.body
