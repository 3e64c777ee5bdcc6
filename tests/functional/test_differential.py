"""Random histories of requests to plain Swift and to Sluice while policies are created, deleted and changed.

Every response is compared (``tests.support.cluster.differential``), and at the end every object and every listing.
``SLUICE_EXAMPLES`` is the number of histories, each of up to ``SLUICE_STEPS`` requests.
"""

import hashlib
import hmac
import io
import json
import os
import random
import tarfile
import time
from urllib.parse import quote

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule, run_state_machine_as_test
from tests.support.cluster.differential import Different, Twins
from tests.support.cluster.people import s3_keys
from tests.support.cluster.s3_differential import Both, client_of
from tests.support.sandbox.process import XOR

from sluice_core.errors import SluiceError

EXAMPLES = int(os.environ.get("SLUICE_EXAMPLES", "12"))
#: Histories of a functional run; a probe runs all.
FEW = 2
STEPS = int(os.environ.get("SLUICE_STEPS", "40"))
TEXT = b"".join(b"%07d the quick brown fox jumps over the lazy dog\n" % n for n in range(20_000))
NOISE = random.Random(11).randbytes(600_000)
SIZES = (0, 1, 100, 4095, 4096, 65_535, 65_536, 65_537, 262_143, 262_144, 262_145, 300_000, 700_001)
ONE, OTHER, SEGMENTS, VERSIONED, LINKS = "d one", "d-two", "d-segments", "d-versioned", "d-links"
CONTAINERS = (ONE, OTHER, VERSIONED)
#: Erasure-coded containers.
CODED = (OTHER, SEGMENTS)
NAMES = ("a", "pics/x.jpg", "c d/é")
#: The container of S3 clients, which an S3 client must create.
BUCKET, KEY, PART = "d-bucket", "in parts", 5 << 20
#: An isolated filter that changes stored bytes, and is decoded on GET.
SCRAMBLE = {
    "keyword": "dscramble",
    "environment": "process",
    "language": "python",
    "main": "Xor",
    "reverse": True,
    "capabilities": {"changes_length": False, "stage": 450},
    "parameters": [{"name": "key", "type": "int", "minimum": 0, "maximum": 255, "default": 90}],
}
#: None: no policy.  A policy of a container replaces that of its tenant.
TENANT_POLICIES = (
    None,
    "FOR TENANT AUTH_test DO SET compression WITH engine=zstd min_size=0 ON PROXY",
    "FOR TENANT AUTH_test DO SET compression WITH engine=lz4 min_size=1000 ON PROXY, SET encryption ON PROXY",
    "FOR TENANT AUTH_test DO SET encryption ON STORAGE_NODE",
    "FOR TENANT AUTH_test DO SET compression WITH min_size=0 ON STORAGE_NODE, SET encryption ON STORAGE_NODE",
    "FOR TENANT AUTH_test DO SET compression WITH min_size=0 ON PROXY, SET encryption ON STORAGE_NODE",
    "FOR TENANT AUTH_test WHEN OBJECT_TYPE = text/* DO SET compression WITH engine=gzip min_size=0",
    "FOR TENANT AUTH_test DO SET compression WITH min_size=0 ON PROXY, SET caching WITH admit=1 ON PROXY",
    "FOR TENANT AUTH_test DO SET compression WITH min_size=0 ON PROXY, SET dscramble ON PROXY",
)
CONTAINER_POLICIES = (
    None,
    "FOR CONTAINER 'AUTH_test/{}' DO SET noop ON PROXY",
    "FOR CONTAINER 'AUTH_test/{}' DO SET compression WITH engine=gzip min_size=0 ON PROXY",
    "FOR CONTAINER 'AUTH_test/{}' DO SET compression WITH engine=gzip min_size=0 ON STORAGE_NODE",
    "FOR CONTAINER 'AUTH_test/{}' WHEN OBJECT_SIZE > 100KB DO SET compression WITH engine=lz4 ON PROXY",
    "FOR CONTAINER 'AUTH_test/{}' DO SET caching WITH admit=1 ON PROXY",
    "FOR CONTAINER 'AUTH_test/{}' DO SET caching WITH admit=1 ON PROXY, SET encryption ON PROXY",
    "FOR CONTAINER 'AUTH_test/{}' DO SET dscramble ON PROXY",
)

SOURCES = {"text": TEXT, "noise": NOISE, "mixed": TEXT[:200_000] + NOISE}
#: A body is drawn as its name and size, so that a history can be printed.
bodies = st.tuples(st.sampled_from(sorted(SOURCES)), st.sampled_from(SIZES))
full_bodies = st.tuples(st.sampled_from(sorted(SOURCES)), st.sampled_from(SIZES[1:]))
containers, names = st.sampled_from(CONTAINERS), st.sampled_from(NAMES)
offsets = st.one_of(st.sampled_from(SIZES), st.integers(0, 800_000))
one_range = st.one_of(
    st.builds("{}-{}".format, offsets, offsets),
    st.builds("{}-".format, offsets),
    st.builds("-{}".format, offsets),
    st.sampled_from(["x", "-", "5-4", "0-0"]),
)
ranges = st.one_of(st.none(), st.lists(one_range, min_size=1, max_size=3).map(lambda parts: "bytes=" + ",".join(parts)))
metadata = st.fixed_dictionaries(
    {},
    optional={
        "Content-Type": st.sampled_from(["text/plain", "image/jpeg", "text/csv; charset=utf-8", "application/x-é"]),
        "X-Object-Meta-Colour": st.sampled_from(["blue", "grün", ""]),
        "X-Object-Meta-Tags": st.just("hot, cold"),
        "Content-Encoding": st.just("identity"),
        "Content-Disposition": st.just('attachment; filename="x"'),
        "X-Delete-After": st.just("86400"),
    },
).map(lambda found: {name: value.encode().decode("latin-1") for name, value in found.items()})


SETTINGS = settings(
    stateful_step_count=STEPS,
    deadline=None,
    suppress_health_check=list(HealthCheck),
    phases=[Phase.explicit, Phase.generate],  # shrinking a history of real requests takes hours
    database=None,
)


def data_of(body):
    source, size = body
    return SOURCES[source][:size]


def md5(data):
    return hashlib.md5(data).hexdigest()


class Histories(RuleBasedStateMachine):
    """One history of requests; ``twins``, ``s3``, ``api`` and ``eventually`` are set by the test."""

    def __init__(self):
        super().__init__()
        self.policies = {}
        self.etags = [md5(b"nothing"), "*"]
        self.waited = self.assembled = False
        self.twins.history.clear()

    @initialize()
    def empty_containers(self):
        for container in (*CONTAINERS, SEGMENTS, LINKS):
            self.clear(container)
            policy = {"X-Storage-Policy": "ec21"} if container in CODED else {}
            self.twins("PUT", container, headers=policy)
        self.twins("POST", VERSIONED, headers={"X-Versions-Enabled": "true"})
        self.twins("POST", "", headers={"X-Account-Meta-Temp-Url-Key": "secret"})
        for container in CONTAINERS:  # else most histories are about missing objects
            for name in NAMES[:2]:
                self.twins("PUT", f"{container}/{name}", TEXT[:5000], {"Content-Type": "text/plain"})

    def clear(self, container):
        for side in self.twins.sides:
            token = {"X-Auth-Token": side.token}
            path = f"{side.account}/{container.replace(' ', '%20')}"
            side.raw("POST", path, {**token, "X-Versions-Enabled": "false"})
            for query in ("format=json&versions", "format=json"):
                listed = side.raw("GET", f"{path}?{query}", token)
                for row in json.loads(listed.body) if listed.status == 200 else []:
                    version = f"?version-id={row['version_id']}" if row.get("version_id", "null") != "null" else ""
                    side.raw("DELETE", f"{path}/{quote(row['name'])}{version}", token)

    def teardown(self):
        for container in (*CONTAINERS, LINKS):
            for name in (*NAMES, "large", "dynamic", "link"):
                self.twins("GET", f"{container}/{name}")
        for container in (*CONTAINERS, SEGMENTS, LINKS):
            self.eventually(lambda container=container: self.same_listing(container))
        for place in list(self.policies):
            self.set_policy(place, None)

    def same_listing(self, container):
        """Listings follow an upload with a delay when a container server is busy."""
        try:
            self.twins.listings(container)
        except Different:
            return False
        return True

    # -- policies ----------------------------------------------------------------------------

    def set_policy(self, place, sentence):
        before = self.policies.pop(place, None)
        if sentence:
            made = self.api.create_policy(sentence, wait=10)
            assert made["enforced"]["nodes"] == made["enforced"]["total"] >= 1, made
            self.policies[place] = made["id"]
        if before:
            self.api.delete_policy(before)

    @rule(sentence=st.sampled_from(TENANT_POLICIES))
    def policy_of_the_tenant(self, sentence):
        if sentence is None or "tenant" not in self.policies:
            self.set_policy("tenant", sentence)

    @rule(container=containers, sentence=st.sampled_from(CONTAINER_POLICIES))
    def policy_of_a_container(self, container, sentence):
        if sentence is None or container not in self.policies:
            self.set_policy(container, sentence and sentence.format(container))

    # -- one object --------------------------------------------------------------------------

    @rule(
        container=containers,
        name=names,
        body=bodies,
        headers=metadata,
        chunked=st.booleans(),
        etag=st.sampled_from(["", "", "right", "wrong"]),
        once=st.booleans(),
    )
    def put_anyhow(self, container, name, body, headers, chunked, etag, once):
        self.put(container, name, body, headers, chunked, etag, once)

    def put(self, container, name, body, headers, chunked, etag, once):
        named, body = dict(headers), data_of(body)
        if etag:
            named["ETag"] = md5(body if etag == "right" else body + b"x")
        if once:
            named["If-None-Match"] = "*"
        self.twins("PUT", f"{container}/{name}", body, named, chunked=chunked)
        self.etags.append(md5(body))

    @rule(container=containers, name=names, body=full_bodies)
    def put_large_enough(self, container, name, body):
        self.put(container, name, body, {"Content-Type": "text/plain"}, False, "", False)

    @rule(container=containers, name=names, body=full_bodies)
    def put_that_is_cut(self, container, name, body):
        self.twins("PUT", f"{container}/{name}", data_of(body), cut=body[1] // 2)

    @rule(
        method=st.sampled_from(["GET", "GET", "HEAD"]),
        container=containers,
        name=names,
        wanted=ranges,
        condition=st.sampled_from(["", "", "If-Match", "If-None-Match", "If-Modified-Since", "If-Unmodified-Since"]),
        pick=st.integers(0, 1000),
    )
    def get(self, method, container, name, wanted, condition, pick):
        headers = {"Range": wanted} if wanted else {}
        if condition.endswith("Match"):
            headers[condition] = self.etags[pick % len(self.etags)]
        elif condition:
            headers[condition] = "Sat, 01 Jan 2000 00:00:00 GMT" if pick % 2 else "Fri, 01 Jan 2100 00:00:00 GMT"
        self.twins(method, f"{container}/{name}", headers=headers)

    @rule(container=containers, name=names, headers=metadata)
    def post(self, container, name, headers):
        self.twins("POST", f"{container}/{name}", headers=headers)

    @rule(container=containers, name=names)
    def delete(self, container, name):
        self.twins("DELETE", f"{container}/{name}")

    @rule(
        source=st.tuples(containers, names),
        destination=st.tuples(containers, names),
        verb=st.booleans(),
        fresh=st.booleans(),
        headers=metadata,
        wanted=st.sampled_from([None, None, "bytes=10-70000"]),
    )
    def copy(self, source, destination, verb, fresh, headers, wanted):
        named = dict(headers) | ({"X-Fresh-Metadata": "true"} if fresh else {})
        source, destination = "/".join(source), "/".join(destination)
        if verb:
            self.twins("COPY", source, headers={**named, "Destination": quote(destination)})
            return
        if wanted:
            named["Range"] = wanted
        self.twins("PUT", destination, headers={**named, "X-Copy-From": quote(source)})

    @precondition(lambda self: not self.waited)  # each takes two seconds
    @rule(container=containers, name=names, body=full_bodies, by_post=st.booleans())
    def an_object_that_expires(self, container, name, body, by_post):
        self.waited = True
        path, moment = f"{container}/{name}", int(time.time()) + 4
        expires = {"X-Delete-At": str(moment)}
        self.twins("PUT", path, data_of(body), {} if by_post else expires)
        if by_post:
            self.twins("POST", path, headers=expires)
        self.twins("GET", path)
        assert time.time() < moment - 0.5, "too slow a machine to see what is before the moment"
        time.sleep(moment + 0.1 - time.time())
        for method in ("GET", "HEAD", "POST"):
            self.twins(method, path)
        self.twins("GET", path, headers={"Range": "bytes=1-5"})

    # -- several objects ---------------------------------------------------------------------

    @rule(parts=st.lists(full_bodies, min_size=1, max_size=3), cut=st.booleans(), right=st.booleans())
    def large_object(self, parts, cut, right):
        manifest = []
        for number, part in enumerate(map(data_of, parts)):
            self.twins("PUT", f"{SEGMENTS}/{number}", part)
            entry = {"path": f"/{SEGMENTS}/{number}", "size_bytes": len(part)}
            entry["etag"] = md5(part if right else part + b"x")
            if cut and len(part) > 200:
                entry["range"] = "100-199"
            manifest.append(entry)
        self.twins("PUT", f"{ONE}/large", json.dumps(manifest).encode(), query="multipart-manifest=put")

    @rule(
        name=st.sampled_from(["large", "dynamic"]),
        wanted=ranges,
        query=st.sampled_from(["", "", "multipart-manifest=get", "multipart-manifest=get&format=raw", "part-number=1"]),
    )
    def get_large_object(self, name, wanted, query):
        answers_with_moments = name == "large" and query.startswith("multipart")
        self.twins(
            "GET",
            f"{ONE}/{name}",
            headers={"Range": wanted} if wanted and not answers_with_moments else {},
            query=query,
        )

    @rule(query=st.sampled_from(["", "multipart-manifest=delete"]))
    def delete_large_object(self, query):
        self.twins("DELETE", f"{ONE}/large", query=query)

    @rule(parts=st.lists(full_bodies, min_size=1, max_size=2))
    def dynamic_large_object(self, parts):
        for number, part in enumerate(map(data_of, parts)):
            self.twins("PUT", f"{SEGMENTS}/dlo/{number}", part)
        self.twins("PUT", f"{ONE}/dynamic", headers={"X-Object-Manifest": f"{SEGMENTS}/dlo/"})

    @rule(path=st.tuples(containers, names), wanted=ranges, query=st.sampled_from(["", "symlink=get"]))
    def symlink(self, path, wanted, query):
        self.twins("PUT", f"{LINKS}/link", headers={"X-Symlink-Target": quote("/".join(path))})
        self.twins("GET", f"{LINKS}/link", headers={"Range": wanted} if wanted else {}, query=query)

    @rule(files=st.dictionaries(names, bodies, min_size=1, max_size=3))
    def unpack_an_archive(self, files):
        archive = io.BytesIO()
        with tarfile.open(fileobj=archive, mode="w") as tar:
            for name, body in ((name, data_of(body)) for name, body in files.items()):
                info = tarfile.TarInfo(name)
                info.size = len(body)
                tar.addfile(info, io.BytesIO(body))
        self.twins("PUT", OTHER, archive.getvalue(), {"Accept": "application/json"}, query="extract-archive=tar")

    @rule(doomed=st.lists(st.tuples(containers, names), min_size=1, max_size=3, unique=True))
    def delete_many(self, doomed):
        lines = "\n".join(quote("/".join(path)) for path in doomed).encode()
        headers = {"Content-Type": "text/plain", "Accept": "application/json"}
        self.twins("POST", "", lines, headers, query="bulk-delete")

    @rule(method=st.sampled_from(["GET", "PUT", "HEAD"]), container=containers, name=names, body=bodies)
    def signed_address(self, method, container, name, body):
        expires = int(time.time()) + 600

        def query(side):
            path = f"{side.account}/{container}/{name}"
            signature = hmac.new(b"secret", f"{method}\n{expires}\n{path}".encode(), hashlib.sha256).hexdigest()
            return f"temp_url_sig={signature}&temp_url_expires={expires}"

        self.twins(
            method, f"{container}/{name}", data_of(body) if method == "PUT" else b"", query=query, anonymous=True
        )

    @precondition(lambda self: not self.assembled)  # each sends eleven megabytes
    @rule(last=full_bodies, complete=st.booleans(), wanted=ranges)
    def upload_in_parts(self, last, complete, wanted):
        self.assembled = True
        where = {"Bucket": BUCKET, "Key": KEY}
        ids = [{"UploadId": one["UploadId"]} for one in self.s3("create_multipart_upload", **where)]
        listed = []
        for number, part in enumerate(((TEXT * 6)[:PART], data_of(last)), 1):
            answers = self.s3("upload_part", *ids, **where, PartNumber=number, Body=part)
            listed.append({"PartNumber": number, "ETag": answers[0]["ETag"]})
        if not complete:
            self.s3("abort_multipart_upload", *ids, **where)
        else:
            self.s3("complete_multipart_upload", *ids, **where, MultipartUpload={"Parts": listed})
        self.s3("get_object", **where, **({"Range": wanted} if wanted else {}))
        self.s3("get_object", **where, PartNumber=2)
        self.s3("list_objects_v2", Bucket=BUCKET)
        self.twins("GET", f"{BUCKET}/{KEY}", headers={"Range": wanted} if wanted else {})

    @rule()
    def get_what_was_uploaded_in_parts(self):
        self.s3("get_object", Bucket=BUCKET, Key=KEY)

    @rule(name=names, wanted=ranges, which=st.integers(0, 3))
    def an_earlier_version(self, name, wanted, which):
        listed = []
        for side in self.twins.sides:
            answer = side.raw("GET", f"{side.account}/{VERSIONED}?versions&format=json", {"X-Auth-Token": side.token})
            rows = [row for row in json.loads(answer.body) if row["name"] == name and "subdir" not in row]
            listed.append({side: rows[which % len(rows)]["version_id"] if rows else "null"}.popitem())
        ids = dict(listed)
        self.twins(
            "GET",
            f"{VERSIONED}/{name}",
            headers={"Range": wanted} if wanted else {},
            query=lambda side: f"version-id={ids[side]}",
        )


class Remembering(Twins):
    """Keeps the first difference with all requests before it: hypothesis repeats a history at a later time."""

    def __init__(self, *sides):
        super().__init__(*sides)
        self.history = []
        self.first = None

    def __call__(self, method, path="", body=b"", headers=None, **more):
        self.history.append(f"{method} {path!r} {len(body)} bytes {headers} {more or ''}")
        try:
            return super().__call__(method, path, body, headers, **more)
        except SluiceError as error:
            self.first = self.first or "\n".join([*self.history, str(error)])
            raise


class RememberingS3(Both):
    """The same for requests of S3."""

    def __init__(self, twins, *clients):
        super().__init__(*clients)
        self.twins = twins

    def __call__(self, method, *pairs, **arguments):
        said = {name: value if name != "Body" else f"{len(value)} bytes" for name, value in arguments.items()}
        self.twins.history.append(f"S3 {method} {said}")
        try:
            return super().__call__(method, *pairs, **arguments)
        except AssertionError as error:
            self.twins.first = self.twins.first or "\n".join([*self.twins.history, str(error)])
            raise


@pytest.fixture
def isolated(cluster, api):
    """The isolated filter of the policies, registered and uploaded."""
    cluster.add(["sandbox"])
    api.register_filter(SCRAMBLE)
    api.upload_filter(SCRAMBLE["keyword"], XOR, wait=10)
    yield
    api.unregister_filter(SCRAMBLE["keyword"], force=True)
    cluster.remove("sandbox")


@pytest.mark.parametrize("examples", [FEW, pytest.param(EXAMPLES, marks=pytest.mark.probe)])
def test_random_histories(cluster, swift, plain, api, eventually, isolated, examples):
    twins = Remembering(swift, plain)
    theirs = client_of(cluster.plain_url, *s3_keys(cluster, "test2:tester2"))
    s3 = RememberingS3(twins, client_of(cluster.proxy_url, *s3_keys(cluster, "test:tester")), theirs)
    s3("create_bucket", Bucket=BUCKET)

    class Case(Histories):
        pass

    Case.twins, Case.s3, Case.api, Case.eventually = twins, s3, api, staticmethod(eventually)
    try:
        run_state_machine_as_test(Case, settings=settings(SETTINGS, max_examples=examples))
    except Exception as error:
        raise AssertionError(twins.first or "the machine itself failed") from error
