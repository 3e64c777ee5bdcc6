"""Objects on one storage node: plain above the disk file, transformed on the disk."""

import hashlib
import itertools
import os
import random
from dataclasses import replace
from io import BytesIO

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from swift.common.exceptions import DiskFileExpired
from tests.support.middleware.object_server import CODED, REPLICATED, StorageNode, intent, swift_conf

from sluice_filters.api import FilterError, Hint, Stream
from sluice_filters.testing.fake_filters import HeadedXor
from sluice_middleware.object_server.diskfile import request_context
from sluice_middleware.object_server.diskfile.decoded_file import DecodedFile
from sluice_middleware.object_server.diskfile.stored_metadata import ENTRY
from sluice_middleware.swift.diskfile_api import POLICIES, Request
from sluice_middleware.wsgi import sysmeta

#: Swift leaves the file open when opening ends with an error.
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")

SMALL_FRAMES = ("compression", {"frame_size": 4096, "min_size": 0})
CHAINS = [(SMALL_FRAMES,), ("xor",), ("compression", "xor")]
FRAGMENT_HEADERS = {
    "X-Object-Sysmeta-Ec-Frag-Index": "1",
    "X-Object-Sysmeta-Ec-Etag": "plain",
    "X-Object-Sysmeta-Ec-Content-Length": "1",
    "X-Backend-Fragment-Preferences": "[]",
}


class Sequential(HeadedXor):
    """Without random access."""

    info = replace(HeadedXor.info, keyword="sequential", random_access=False)


class Failing(HeadedXor):
    """Raises an error in the middle of an object."""

    info = replace(HeadedXor.info, keyword="failing")

    def encoder(self, hint):
        class Broken(Stream):
            def feed(self, data):
                raise FilterError("out of ideas")

        return Broken()


class FailingInThread(Failing):
    """The same, in another thread, when further batches are arriving."""

    info = replace(HeadedXor.info, keyword="failing_in_thread")
    heavy = True


@pytest.fixture(scope="module", autouse=True)
def policies(tmp_path_factory):
    with swift_conf(tmp_path_factory.mktemp("etc")):
        yield


@pytest.fixture
def node(tmp_path):
    return StorageNode(tmp_path / "node", filters=[HeadedXor, Sequential, Failing, FailingInThread])


def text(size):
    return (b"".join(b"%d a line of text\n" % number for number in range(size // 16 + 1)))[:size]


def fragments(data):
    """A fragment archive as a proxy sends it: the second fragment of each segment."""
    policy = POLICIES[CODED]
    size = policy.ec_segment_size
    return b"".join(policy.pyeclib_driver.encode(data[at : at + size])[1] for at in range(0, len(data), size))


@pytest.mark.parametrize("chain", [*CHAINS, ("sequential",), (SMALL_FRAMES, "sequential")], ids=str)
def test_clients_see_plain_bytes_and_the_disk_holds_encoded_ones(node, chain):
    body = text(300_000)
    answer = node.put(body, *chain)
    assert answer.status == "201 Created"
    assert answer.headers["Etag"] == f'"{hashlib.md5(body).hexdigest()}"'
    (file,) = node.files()
    stored = node.stored(file)
    assert stored.size == file.stat().st_size
    assert file.read_bytes() != body
    whole, head = node.get(), node.request("HEAD")
    assert whole.body == body
    for found in (whole, head):
        assert found.status == "200 OK"
        assert found.headers["Content-Length"] == str(len(body))
        assert found.headers["Etag"] == answer.headers["Etag"]
        assert ENTRY not in found.headers
        assert not any("Stored" in name for name in found.headers)
    for start, stop in [(0, 1), (0, 65536), (4095, 4097), (65536, 131072), (1, 299_999), (299_999, 300_000)]:
        assert node.get(f"{start}-{stop - 1}").body == body[start:stop]
    assert node.get("-7").body == body[-7:]
    assert node.get("0-").body == body
    assert node.get("200000-").body == body[200000:]
    assert node.get("300000-").status.startswith("416")
    assert node.files() == [file]
    assert node.quarantined() == []


@pytest.fixture(scope="module")
def nodes(policies, tmp_path_factory):
    """A node that transforms and one that stores the same objects plain."""
    folder = tmp_path_factory.mktemp("nodes")
    node = StorageNode(folder / "ours", filters=[HeadedXor, Sequential])
    return node, StorageNode(folder / "plain", clock=node.clock), itertools.count()


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_ranges_are_those_of_the_plain_object(nodes, data):
    chain = data.draw(st.sampled_from([*CHAINS, ("sequential",)]))
    size = data.draw(st.sampled_from([1, 2, 4095, 4096, 4097, 65535, 65536, 65537, 200_001]))
    body = random.Random(size).randbytes(size // 2) + text(size - size // 2)
    places = st.integers(0, size - 1)
    ranges = data.draw(st.lists(st.tuples(places, places).map(sorted), min_size=1, max_size=4))
    node, plain, numbers = nodes
    name = f"a/c/{next(numbers)}"
    wanted = ",".join(f"{first}-{last}" for first, last in ranges)
    assert node.put(body, *chain, name=name).status == plain.put(body, name=name).status == "201 Created"
    ours, theirs = node.get(wanted, name=name), plain.get(wanted, name=name)
    assert ours.status == theirs.status
    assert without_boundary(ours) == without_boundary(theirs)
    assert node.get(name=name).body == body
    assert node.quarantined() == []


def without_boundary(answer):
    if not answer.headers["Content-Type"].startswith("multipart"):
        return answer.body
    boundary = answer.headers["Content-Type"].rpartition("=")[2].encode()
    return answer.body.replace(boundary, b"boundary")


@pytest.mark.parametrize("chain", [("compression",), ("xor",), ("compression", "xor")], ids=str)
def test_a_fragment_archive_is_a_stream_of_its_own(node, chain):
    archive = fragments(text(400_000))
    answer = node.put(archive, *chain, policy=CODED, headers=FRAGMENT_HEADERS)
    assert answer.status == "201 Created"
    (file,) = node.files()
    assert file.name.endswith("#1#d.data")
    assert node.stored(file).size == file.stat().st_size != len(archive)
    found = node.get(policy=CODED)
    assert found.body == archive
    assert found.headers["X-Object-Sysmeta-Ec-Frag-Index"] == "1"
    assert node.get("1000-70000", policy=CODED).body == archive[1000:70001]
    assert node.quarantined() == []


def test_a_compressible_object_takes_no_more_blocks_than_its_stored_bytes(node):
    node.put(text(10_000_000), "compression")
    (file,) = node.files()
    found = file.stat()
    assert found.st_size < 2_000_000
    assert found.st_blocks * 512 <= found.st_size + 256 * 1024


@pytest.mark.parametrize(
    ("body", "chain"),
    [(b"", ("compression", "xor")), (os.urandom(1_000_000), ("compression",)), (b"tiny", ("compression",))],
    ids=["empty", "incompressible", "tiny"],
)
def test_an_object_that_no_filter_changed_is_a_stock_file(node, body, chain):
    assert node.put(body, *chain).status == "201 Created"
    (file,) = node.files()
    assert node.stored(file) is None
    assert file.read_bytes() == body == node.get().body


def test_an_object_without_a_transform_is_a_stock_file(node):
    node.put(b"as ever")
    (file,) = node.files()
    assert node.stored(file) is None
    assert node.get().body == b"as ever"


def test_a_post_leaves_the_stored_bytes_and_what_describes_them(node):
    body = text(100_000)
    node.put(body, "compression", "xor", headers={"X-Object-Meta-Old": "1"})
    assert node.request("POST", headers={"X-Object-Meta-New": "2"}).status == "202 Accepted"
    found = node.get()
    assert found.body == body
    assert found.headers["X-Object-Meta-New"] == "2"
    assert "X-Object-Meta-Old" not in found.headers
    assert node.get("50000-50009").body == body[50000:50010]
    (meta,) = node.files(".meta")
    assert node.stored(meta) is None


def test_conditional_requests_use_the_plain_etag(node):
    body = text(10_000)
    etag = node.put(body, "xor").headers["Etag"]
    assert node.get(headers={"If-None-Match": etag}).status == "304 Not Modified"
    assert node.get(headers={"If-Match": '"other"'}).status == "412 Precondition Failed"
    assert node.get("5-9", headers={"If-Range": etag}).body == body[5:10]
    assert node.request("PUT", body=b"x", headers={"If-None-Match": "*"}).status == "412 Precondition Failed"
    assert node.put(body, "xor", headers={"Etag": "0" * 32}, name="a/c/other").status.startswith("422")


def test_the_newer_object_replaces_the_older_in_either_form(node):
    for body, chain in ((b"one" * 5000, ("xor",)), (b"two" * 5000, ()), (b"three" * 5000, ("compression",))):
        node.put(body, *chain)
        assert node.get().body == body
        assert len(node.files()) == 1
    assert node.request("DELETE").status == "204 No Content"
    assert node.get().status == "404 Not Found"


@pytest.mark.parametrize("chain", CHAINS, ids=str)
def test_a_plain_file_reads_and_seeks_like_any_file(node, chain):
    body = text(300_000)
    node.put(body, *chain)
    (path,) = node.files()
    file = DecodedFile(open(path, "rb"), node.stored(path), len(body), node.manager().disk_filters, Hint())  # noqa: SIM115
    assert file.read() == body
    assert file.read() == file.read(10) == b""
    assert file.seek(1000, stop=2000) == file.tell() == 1000
    assert file.read(600) + file.read(600) + file.read(10) == body[1000:2010]  # beyond the expected end
    assert file.tell() == 2010
    assert file.read() == body[2010:]
    assert file.seek(10**9) == len(body)
    assert file.read(1) == b""
    file.close()


def test_writing_nothing_is_nothing(node):
    disk_file = node.manager().get_diskfile("sda", "0", "a", "c", "o", POLICIES[0])
    wanted = request_context.RequestedTransform(intent("xor")[sysmeta.NODE])
    with request_context.request_scope(request_context.RequestContext(wanted)), disk_file.create() as writer:
        writer.write(b"")
        assert writer.chunks_finished() == (0, hashlib.md5(b"").hexdigest())
        writer.put({"X-Timestamp": "1700000000.00000", "ETag": hashlib.md5(b"").hexdigest(), "Content-Length": "0"})
    (file,) = node.files()
    assert (file.stat().st_size, node.stored(file)) == (0, None)


def test_an_object_that_has_expired_is_gone_and_its_metadata_are_plain(node):
    body = text(10_000)
    node.put(body, "compression", headers={"X-Delete-At": "9999999998"})
    disk_file = node.manager().get_diskfile("sda", "0", "a", "c", "o", POLICIES[0])
    with pytest.raises(DiskFileExpired) as caught:
        disk_file.open(current_time=9_999_999_999)
    assert caught.value.metadata["Content-Length"] == str(len(body))
    assert ENTRY not in caught.value.metadata
    disk_file = node.manager().get_diskfile("sda", "0", "a", "c", "o", POLICIES[0], open_expired=True)
    with disk_file.open(current_time=9_999_999_999):
        assert disk_file.content_length == len(body)


def test_an_interrupted_upload_leaves_no_file(node):
    answer = node.request("PUT", body=text(600_000), headers={**intent("compression"), "Content-Length": "700000"})
    assert answer.status.startswith("499")
    assert node.files() == []
    assert [one for one in node.folder.rglob("*") if one.is_file() and "hashes" not in one.name] == []


REFUSALS = [
    (intent("unheard"), "filter `unheard` is not installed"),
    (intent("xor", version=9), "filter `xor` of version 9 is wanted, installed is 1"),
    (intent("noop"), "filter `noop` as installed is not reversible"),
    (intent(("compression", {"engine": "magic"})), "`engine` is `magic`"),
    (intent("encryption"), "no key manager is configured here"),
    ({"X-Object-Sysmeta-Sluice-Node": "{"}, "object metadata `X-Object-Sysmeta-Sluice-Node` is not JSON"),
    ({"X-Object-Sysmeta-Sluice-Node": "[]"}, "object metadata `X-Object-Sysmeta-Sluice-Node` names no filters"),
    ({"X-Object-Sysmeta-Sluice-Node": "[1]"}, "object metadata `X-Object-Sysmeta-Sluice-Node` holds no filter: `1`"),
    (intent("failing"), "a filter failed: out of ideas"),
    (intent("failing_in_thread"), "a filter failed: out of ideas"),
    ({ENTRY: "{}"}, "these are stored bytes of another node"),
]


@pytest.mark.parametrize(("headers", "reason"), REFUSALS, ids=[reason for _, reason in REFUSALS])
@pytest.mark.parametrize("policy", [REPLICATED, CODED])
def test_a_node_refuses_transforms_it_cannot_do_and_stores_nothing(node, headers, reason, policy):
    before = fragments(text(10_000))
    node.put(before, "xor", policy=policy, headers=FRAGMENT_HEADERS)
    sent = {**FRAGMENT_HEADERS, **headers, "X-Backend-Replication-Headers": ENTRY}
    answer = node.request("PUT", body=text(300_000), headers=sent, policy=policy)
    assert answer.status == "409 Refused by Sluice"
    assert answer.headers["X-Backend-Sluice-Refused"].startswith(reason)
    assert answer.body.decode() == answer.headers["X-Backend-Sluice-Refused"]
    assert len(node.files()) == 1
    assert node.get(policy=policy).body == before


def test_the_body_of_a_refused_upload_is_read_to_its_end(node):
    source = BytesIO(text(300_000))
    request = Request.blank(
        "/sda/0/a/c/o",
        environ={"wsgi.input": source},
        method="PUT",
        headers={**intent("unheard"), "X-Timestamp": "1700000000.0", "Content-Type": "x", "Content-Length": "300000"},
    )
    assert request.get_response(node.server).status_int == 409
    assert source.tell() == 300_000


def test_the_reader_hides_the_file_descriptor(node):
    node.put(text(100_000), "compression")
    node.put(b"plain", name="a/c/plain")
    for name, has_file in (("o", False), ("plain", True)):
        disk_file = node.manager().get_diskfile("sda", "0", "a", "c", name, POLICIES[0])
        with disk_file.open():
            reader = disk_file.reader()
        assert hasattr(reader, "_fp") is has_file
        assert reader.can_zero_copy_send() is False
        reader.close()


def test_a_nested_request_has_its_own_transform(node):
    outer = {"REQUEST_METHOD": "PUT", "HTTP_X_OBJECT_SYSMETA_SLUICE_NODE": "outer", "CONTENT_TYPE": "a/b"}

    def scope(env):
        return request_context.request_scope(request_context.requested_context(env))

    with scope(outer):
        with scope({"REQUEST_METHOD": "PUT"}):
            assert request_context.current_request().transform is None
        assert request_context.current_request().transform == request_context.RequestedTransform("outer", "a/b")
        with scope({**outer, "REQUEST_METHOD": "GET"}):
            assert request_context.current_request().transform is None
    assert request_context.current_request().transform is None
