"""Objects with the content of a URL: contracted, and expanded with any response of an HTTP server on the loopback."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from tests.support.cluster.motifs import concat, contract, is_contracted, motif, put
from tests.support.cluster.object_files import download
from tests.support.cluster.people import swift_as
from tests.support.http_source import chunked, endless, http_source, page, redirect, silent

from sluice_middleware.wsgi.response import RefusedRequest

PAGE = b"what the Web has\n" * 100_000
CONTAINER = "ur-mirror"
SLOW = {
    "no answer": b"",
    "no end of its headers": b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n",
    "no end of its bytes": b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(PAGE), PAGE[:100_000]),
}


@pytest.fixture(scope="module")
def source(motifs, swift):
    with http_source() as server:
        put(swift, CONTAINER)
        yield server


@pytest.fixture(scope="module")
def mirrored(motifs, swift, source):
    """Writes a contracted object whose URL then gives a response."""

    def write(name, answer):
        source.answers[name] = page(PAGE)
        put(swift, f"{CONTAINER}/{name}", PAGE, x_object_motif=motif("url", source=source.url(name)))
        contract(motifs, f"{CONTAINER}/{name}")
        source.answers[name] = answer
        return f"{CONTAINER}/{name}"

    return write


@pytest.fixture(scope="module")
def slow_reads(swift, source, mirrored):
    """Concurrent reads of objects whose sources stop sending."""
    names = {how: mirrored(how.replace(" ", "-"), silent(source, begun)) for how, begun in SLOW.items()}
    with ThreadPoolExecutor(len(names)) as pool:
        yield {how: (name, pool.submit(download, swift, name)) for how, name in names.items()}


def check_still_contracted(motifs, swift, source, path):
    """It is unchanged for other requests, and a good response gives the reader its bytes."""
    assert is_contracted(motifs, path)
    head = swift.request("HEAD", path)
    assert (head.status, head.headers["content-length"]) == (200, str(len(PAGE)))
    source.answers[path.rpartition("/")[2]] = page(PAGE)
    found = swift.request("GET", path)
    assert (found.status, found.body == PAGE) == (200, True)


def test_a_get_proves_a_url_and_later_a_head_does_before_the_bytes_go(motifs, swift, source, mirrored):
    path = mirrored("good", page(PAGE))
    found = swift.request("GET", path)
    assert (found.status, found.body == PAGE) == (200, True)
    contract(motifs, path)
    asked = [one for one in source.requests if "/good " in one]
    assert [one.split()[0] for one in asked] == ["GET", "GET", "HEAD"], "a proof, an expansion, a look"
    assert not any(swift.token in one for one in asked), "no credentials of who reads"


def halting(more):
    """A response whose second part waits for ``more``."""

    def answer(connection, method):
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(PAGE), PAGE[:500_000]))
        more.wait()
        connection.sendall(PAGE[500_000:])

    return answer


def test_bytes_of_a_slow_source_come_as_it_sends_them(motifs, swift, source, mirrored):
    more = threading.Event()
    path = mirrored("halting", halting(more))
    try:
        begun = download(swift, path, size=100_000)
        assert (begun.status, PAGE.startswith(begun.body)) == (200, True)
    finally:
        more.set()
    assert swift.request("GET", path).body == PAGE


def test_a_motif_that_is_attached_while_bytes_are_made_stays(motifs, swift, source, mirrored):
    put(swift, f"{CONTAINER}/twin", PAGE)
    more = threading.Event()
    path = mirrored("attached", halting(more))
    try:
        assert download(swift, path, size=100_000).status == 200
        assert swift.request("POST", path, x_object_motif=concat(f"{CONTAINER}/twin")).status == 202
    finally:
        more.set()
    assert swift.request("GET", path).body == PAGE
    source.answers["attached"] = page(PAGE)
    contract(motifs, path)
    source.answers["attached"] = page(b"no", status="404 Not Found")
    found = swift.request("GET", path)
    assert (found.status, found.body == PAGE) == (200, True)


def test_slow_sources_of_one_tenant_leave_places_to_others(motifs, swift, source, mirrored):
    """A daemon makes sixteen objects at a time, and a tenant has more of them whose sources are slow."""
    other, more = swift_as(motifs, "test2:tester2"), threading.Event()
    put(other, CONTAINER)
    put(other, f"{CONTAINER}/source", PAGE)
    for name in ("first", "second"):
        made = motif("duplicate_of", source=f"AUTH_test2/{CONTAINER}/source")
        put(other, f"{CONTAINER}/{name}", PAGE, x_object_motif=made)
        contract(motifs, f"{CONTAINER}/{name}", account="AUTH_test2")
    slow = [mirrored(f"slow-{number}", halting(more)) for number in range(20)]

    def asked():
        return sum(one.startswith("GET /slow-") for one in source.requests)

    with ThreadPoolExecutor(len(slow)) as pool:
        try:
            reads = [pool.submit(download, swift, path) for path in slow]
            wait_until_still(asked, 11)
            begun = time.monotonic()
            for name in ("first", "second"):
                found = other.request("GET", f"{CONTAINER}/{name}")
                assert (found.status, found.body == PAGE) == (200, True)
            assert time.monotonic() - begun < 10
        finally:
            more.set()
        assert [(read.result().status, read.result().body == PAGE) for read in reads] == [(200, True)] * len(slow)


def wait_until_still(count, least):
    """Wait until a number is at least ``least``, and no longer grows."""
    end, before, since = time.monotonic() + 30, -1, time.monotonic()
    while before < least or time.monotonic() - since < 1.0:
        assert time.monotonic() < end, before
        time.sleep(0.05)
        now = count()
        if now != before:
            before, since = now, time.monotonic()


@pytest.mark.parametrize(
    ("name", "answer", "reason"),
    [
        ("gone", page(b"no", status="404 Not Found"), "answered 404"),
        ("forbidden", page(b"no", status="403 Forbidden"), "answered 403"),
        ("broken", page(b"no", status="500 Oops"), "answered 500"),
        ("empty", page(b"", status="204 No Content"), "answered 204"),
        ("shorter", page(PAGE[:-1]), f"has {len(PAGE) - 1} bytes, expected {len(PAGE)}"),
        ("elsewhere", redirect("http://127.0.0.2:1/page"), "host `127.0.0.2` is not among those"),
        ("ipv6", redirect("http://[::1]:1/page"), "host `::1` is not among those"),
        ("file", redirect("file:///etc/passwd"), "is no URL of a service"),
        ("circle", redirect("/circle"), "redirects more than 5 times"),
        ("hangs-up", lambda connection, method: connection.close(), "disconnected without sending a response"),
        ("no-http", lambda connection, method: connection.sendall(b"SSH-2.0-OpenSSH_9\r\n" * 50), "cannot be read"),
    ],
)
def test_an_answer_that_cannot_be_used_is_503_before_the_first_byte(
    motifs, swift, source, mirrored, name, answer, reason
):
    path = mirrored(name, answer)
    refused = swift.request("GET", path)
    assert (refused.status, refused.headers.get("retry-after")) == (503, "5"), refused
    assert reason in refused.body.decode()
    check_still_contracted(motifs, swift, source, path)


@pytest.mark.parametrize(
    ("name", "answer"),
    [
        ("lies", lambda source: page(PAGE[: len(PAGE) // 2], length=len(PAGE))),
        ("unfinished", lambda source: chunked([PAGE[:-1], PAGE[-1:]])),
        ("other-bytes", lambda source: page(PAGE[::-1])),
        ("more", lambda source: chunked([PAGE, b"and more"])),
        ("endless", endless),
    ],
)
def test_bytes_that_are_not_those_of_the_object_cut_the_connection(motifs, swift, source, mirrored, name, answer):
    def sent(connection, method):
        answer(source)(connection, method)
        connection.close()

    path = mirrored(name, sent)
    found = download(swift, path)
    assert (found.status, found.whole) == (200, False)
    assert len(found.body) < len(PAGE)
    check_still_contracted(motifs, swift, source, path)


def test_a_source_that_refuses_keeps_the_bytes_where_they_are(motifs, swift, source):
    source.answers["stays"] = page(b"no", status="403 Forbidden")
    path = f"{CONTAINER}/stays"
    put(swift, path, PAGE, x_object_motif=motif("url", source=source.url("stays?signature=secret")))
    with pytest.raises(RefusedRequest, match="answered 403") as refused:
        contract(motifs, path)
    assert "secret" not in str(refused.value)
    assert not is_contracted(motifs, path)
    assert swift.request("GET", path).body == PAGE


@pytest.mark.parametrize("host", ["127.0.0.2", "10.0.0.1", "[::1]"])
def test_a_host_that_is_not_listed_is_not_attached(motifs, swift, source, host):
    made = motif("url", source=f"http://{host}:{source.server_address[1]}/good")
    refused = swift.request("PUT", f"{CONTAINER}/refused", PAGE, x_object_motif=made)
    assert (refused.status, b"is not among those" in refused.body) == (400, True), refused
    assert swift.request("HEAD", f"{CONTAINER}/refused").status == 404


@pytest.mark.probe
@pytest.mark.parametrize("how", SLOW)
def test_a_source_that_falls_silent_is_given_up(motifs, swift, source, slow_reads, how):
    """The last test: it takes half a minute, which began before the other tests."""
    path, reading = slow_reads[how]
    found = reading.result(60)
    if found.status == 503:
        assert b"gave no byte for too long" in found.body
    else:
        assert (found.status, found.whole, PAGE.startswith(found.body)) == (200, False, True)
    assert (found.status == 200) == ("bytes" in how)
    check_still_contracted(motifs, swift, source, path)
