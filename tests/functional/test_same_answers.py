"""The same requests to plain Swift and to Sluice under a compression policy: the responses are compared."""

import contextlib
import hashlib
import http.client
import itertools
import json
import random
import re
import socket
from urllib.parse import urlsplit

import pytest

TEXT = b"".join(b"%d: the quick brown fox jumps over the lazy dog\n" % n for n in range(40_000))
BODIES = {
    "empty": b"",
    "tiny": b"tiny",
    "page": TEXT[:9000],
    "text": TEXT,
    "noise": random.Random(3).randbytes(400_000),
    "mixed": TEXT[:400_000] + random.Random(4).randbytes(600_000) + TEXT[:300_001],
}
#: Values that must differ: times, ids, the two accounts, and the MD5 of a manifest, which has its segments' times.
NOT_COMPARED = {
    "date",
    "x-trans-id",
    "x-openstack-request-id",
    "last-modified",
    "x-timestamp",
    "connection",
    "x-copied-from-account",
    "x-copied-from-last-modified",
    "x-manifest-etag",
}


def md5(data):
    return hashlib.md5(data).hexdigest()


@pytest.fixture(
    scope="module", params=["zstd", *(pytest.param(engine, marks=pytest.mark.probe) for engine in ("lz4", "gzip"))]
)
def both(request, cluster, api, swift, plain):
    policy = api.create_policy(f"FOR TENANT AUTH_test DO SET compression WITH engine={request.param} ON PROXY", wait=10)
    assert policy["enforced"]["nodes"] == policy["enforced"]["total"] == 1
    try:
        yield Both(swift, plain, request.param)
    finally:
        api.delete_policy(policy["id"])


class Both:
    """Sends each request twice and compares status, headers and body."""

    def __init__(self, ours, theirs, engine):
        self.clients = (ours, theirs)
        self.engine = engine
        self.container = f"same-{engine}"
        for client in self.clients:
            assert client.request("PUT", self.container).status in (201, 202)

    def __call__(self, method, name, body=b"", **headers):
        mine, theirs = (client.request(method, f"{self.container}/{name}", body, **headers) for client in self.clients)
        assert self.view(mine) == self.view(theirs), (method, name, headers)
        return mine

    @staticmethod
    def view(answer):
        headers = {name: value for name, value in answer.headers.items() if name not in NOT_COMPARED}
        body = answer.body
        found = re.fullmatch(r"multipart/byteranges;\s*boundary=(\w+)", headers.get("content-type", ""))
        if found:
            headers["content-type"] = "multipart/byteranges"
            body = body.replace(found[1].encode(), b"BOUNDARY")
        body = body.replace(b"AUTH_test2", b"AUTH_test")
        return answer.status, headers, body

    def listings(self):
        rows = []
        for client in self.clients:
            listing = client.listing(self.container)
            rows.append(
                [(row["name"], row["bytes"], row.get("slo_etag", row["hash"]), row["content_type"]) for row in listing]
            )
        assert rows[0] == rows[1]
        return rows[0]


@pytest.mark.parametrize("kind", BODIES)
def test_put_get_head_and_listing(both, kind):
    body = BODIES[kind]
    both("PUT", kind, body, Content_Type="text/plain", X_Object_Meta_Colour="blue", Etag=md5(body))
    answer = both("GET", kind)
    assert answer.body == body
    head = both("HEAD", kind)
    assert head.headers["content-length"] == str(len(body))
    assert (kind, len(body), md5(body), "text/plain") in both.listings()


RANGES = [
    "0-0",
    "0-65535",
    "65536-",
    "-1",
    "-99999999",
    "262140-262150",
    "1000000-1000100",
    "99999999-",
    "7-5",
    "x",
    "-0",
]
MANY = ["0-9,20-29", "5-1000,900-1100", "0-0,-1", "99999999-,0-4", "0-99,1000000-1000099,300000-300099"]


@pytest.mark.parametrize("kind", ["text", "mixed", "noise", "page"])
def test_ranges(both, kind):
    both("PUT", f"range-{kind}", BODIES[kind], Content_Type="text/plain")
    for value in RANGES + MANY:
        both("GET", f"range-{kind}", Range=f"bytes={value}")
        both("HEAD", f"range-{kind}", Range=f"bytes={value}")


def test_conditions(both):
    both("PUT", "conditions", TEXT, Content_Type="text/plain")
    etag = md5(TEXT)
    past, future = "Sat, 01 Jan 2000 00:00:00 GMT", "Fri, 01 Jan 2100 00:00:00 GMT"
    for headers in [
        {"If_Match": etag},
        {"If_Match": f'"{etag}"'},
        {"If_Match": '"other"'},
        {"If_Match": "*"},
        {"If_None_Match": etag},
        {"If_None_Match": '"other"'},
        {"If_None_Match": "*"},
        {"If_Modified_Since": past},
        {"If_Modified_Since": future},
        {"If_Unmodified_Since": past},
        {"If_Unmodified_Since": future},
        {"If_Range": f'"{etag}"', "Range": "bytes=3-70000"},
        {"If_Range": '"other"', "Range": "bytes=3-70000"},
        {"If_Match": etag, "Range": "bytes=100-199"},
        {"If_None_Match": etag, "Range": "bytes=100-199"},
    ]:
        for method in ("GET", "HEAD"):
            both(method, "conditions", **headers)


def test_etags_are_checked_and_refusals_leave_nothing(both):
    for kind in ("text", "noise", "page"):
        both("PUT", f"wrong-{kind}", BODIES[kind], Etag=md5(b"other"))
        both("GET", f"wrong-{kind}")
    both("PUT", "once", TEXT, If_None_Match="*", Content_Type="text/plain")
    both("PUT", "once", TEXT[:500], If_None_Match="*")
    assert both("GET", "once").body == TEXT


def test_post_copy_delete(both):
    both("PUT", "source", TEXT, Content_Type="text/plain", X_Object_Meta_A="1")
    both("POST", "source", X_Object_Meta_B="2")
    assert both("HEAD", "source").headers["x-object-meta-b"] == "2"
    both("COPY", "source", Destination=f"{both.container}/copied")
    assert both("GET", "copied").body == TEXT
    both("PUT", "copied too", X_Copy_From=f"{both.container}/source", X_Object_Meta_C="3")
    assert both("GET", "copied too", Range="bytes=500000-500009").body == TEXT[500000:500010]
    both("COPY", "source", Destination=f"{both.container}/source", X_Fresh_Metadata="true")
    both("DELETE", "source")
    both("GET", "source")
    both("HEAD", "source")
    both.listings()


def test_a_copy_into_a_container_without_policy_is_plain_and_lists_plain(both, swift, plain):
    both("PUT", "inside", TEXT, Content_Type="text/plain")
    rows = []
    for client in both.clients:
        client.request("PUT", "outside")
        answer = client.request("COPY", f"{both.container}/inside", Destination="outside/copy")
        assert answer.status == 201
        rows.append([(row["bytes"], row["hash"]) for row in client.listing("outside")])
    assert rows[0] == rows[1] == [(len(TEXT), md5(TEXT))]


def test_static_large_objects(both):
    parts = [TEXT[:700_000], TEXT[700_000:1_400_000], BODIES["noise"]]
    manifest = []
    for number, part in enumerate(parts):
        both("PUT", f"slo/{number}", part)
        manifest.append({"path": f"/{both.container}/slo/{number}", "etag": md5(part), "size_bytes": len(part)})
    for client in both.clients:
        target = f"{client.account}/{both.container}/large?multipart-manifest=put"
        answer = client.raw("PUT", target, {"X-Auth-Token": client.token}, json.dumps(manifest).encode())
        assert answer.status == 201, answer
    whole = b"".join(parts)
    assert both("GET", "large").body == whole
    for value in ("0-9", "699990-700009", "-5", "1399999-1400001", "0-9,800000-800009"):
        both("GET", "large", Range=f"bytes={value}")
    both("HEAD", "large")
    both.listings()


def test_dynamic_large_objects(both):
    for number, part in enumerate([TEXT[:300_000], TEXT[300_000:600_000]]):
        both("PUT", f"dlo/{number}", part)
    both("PUT", "dynamic", X_Object_Manifest=f"{both.container}/dlo/")
    assert both("GET", "dynamic").body == TEXT[:600_000]
    both("GET", "dynamic", Range="bytes=299990-300009")
    both("HEAD", "dynamic")


def test_account_and_container_count_plain_bytes(both, eventually):
    def counted():
        answers = [client.request("HEAD", both.container) for client in both.clients]
        return [(one.headers["x-container-object-count"], one.headers["x-container-bytes-used"]) for one in answers]

    both("PUT", "counted", TEXT)
    eventually(lambda: len(set(counted())) == 1)


def test_random_overwrites_and_ranges(both):
    rng = random.Random(both.engine)
    for turn in range(25):
        size = rng.choice([0, 1, 100, 4095, 4096, 5000, 65_536, 262_143, 262_144, 262_145, 900_000])
        body = bytes(itertools.islice(itertools.cycle(rng.choice([TEXT, BODIES["noise"]])), size))
        both("PUT", "random", body)
        first = rng.randrange(0, 1_000_000)
        both("GET", "random", Range=f"bytes={first}-{first + rng.randrange(0, 300_000)}")
        both("GET", "random", Range=f"bytes=-{rng.randrange(1, 1_000_000)}")
        if turn % 5 == 0:
            both("GET", "random")


def test_objects_written_under_a_policy_read_back_after_it_was_deleted(both, api, swift):
    both("PUT", "remains", TEXT)
    other = api.create_policy("FOR CONTAINER AUTH_test/elsewhere DO SET noop", wait=10)
    api.delete_policy(other["id"])
    assert both("GET", "remains").body == TEXT


def connected(client, cluster):
    address = cluster.proxy_url if client.account.endswith("AUTH_test") else cluster.plain_url
    return http.client.HTTPConnection(urlsplit(address).netloc, timeout=20)


@pytest.mark.parametrize("etag", [md5(TEXT), md5(b"other"), None])
def test_an_upload_without_length(both, cluster, etag):
    statuses = []
    for client in both.clients:
        with contextlib.closing(connected(client, cluster)) as connection:
            headers = {"X-Auth-Token": client.token, "Transfer-Encoding": "chunked", "Content-Type": "text/plain"}
            pieces = (TEXT[first : first + 70_001] for first in range(0, len(TEXT), 70_001))
            named = {**headers, "ETag": etag} if etag else headers
            connection.request("PUT", f"{client.account}/{both.container}/chunked", pieces, named, encode_chunked=True)
            answer = connection.getresponse()
            answer.read()
            statuses.append((answer.status, answer.headers.get("ETag")))
    assert statuses[0] == statuses[1]
    both("GET", "chunked")
    both("GET", "chunked", Range="bytes=800000-800099")
    both.listings()


def test_an_upload_that_is_cut_off_leaves_the_old_object(both, cluster):
    both("PUT", "cut", TEXT[:5000], Content_Type="text/plain")
    for client in both.clients:
        with contextlib.closing(connected(client, cluster)) as connection:
            connection.putrequest("PUT", f"{client.account}/{both.container}/cut")
            connection.putheader("X-Auth-Token", client.token)
            connection.putheader("Content-Length", str(len(TEXT)))
            connection.endheaders()
            connection.send(TEXT[: len(TEXT) // 2])
            connection.sock.shutdown(socket.SHUT_WR)
            with connection.getresponse() as response:
                assert response.status == 499
    assert both("GET", "cut").body == TEXT[:5000]


def test_nobody_can_send_or_see_our_metadata(both):
    forged = json.dumps([{"f": "compression", "v": 1, "r": {"size": 1}}])
    both("PUT", "forged", b"plain", Content_Type="text/plain", X_Object_Sysmeta_Sluice_Chain=forged)
    assert both("GET", "forged").body == b"plain"
    both("PUT", "real", TEXT, Content_Type="text/plain")
    both("POST", "real", X_Object_Sysmeta_Sluice_Etag="0" * 32)
    for method in ("GET", "HEAD"):
        assert not [name for name in both(method, "real").headers if "sysmeta" in name]
