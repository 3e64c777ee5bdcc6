"""Native filters, workload metrics and global controllers that are uploaded while the cluster runs."""

import hashlib
import http.client
import json
import threading
from urllib.parse import urlsplit

import pytest

from sluice_aio.base.layout import CODE_USER
from sluice_aio.keystone.http import KeystoneHttp, swift_client
from sluice_core.errors import PeerError

TEXT = b"".join(b"%d: the quick brown fox jumps over the lazy dog\n" % n for n in range(5_000))

SHIFT = """
from sluice_core.describe import ActionInfo, Parameter
from sluice_filters.api import Filter, Stream


class Table(Stream):
    def __init__(self, shift, record=None):
        self._table = bytes((value + shift) % 256 for value in range(256))
        self._size = 0
        self._record = record

    def feed(self, data):
        self._size += len(data)
        return data.translate(self._table)

    def record(self):
        return {**self._record, "size": self._size}


class Shift(Filter):
    info = ActionInfo(
        "shift", "filter", "adds to each byte", (Parameter("by", "int", "the number", 1, minimum=0, maximum=255),),
        places=("proxy", "storage_node"), stage=430, changes_content=True, reversible=True,
    )

    def encoder(self, hint):
        return Table(self.params["by"] + EXTRA, {"by": self.params["by"] + EXTRA})

    def decoder(self, record, window=None):
        return Table(-record["by"])
"""
FIRST = SHIFT.replace("EXTRA", "0")
SECOND = SHIFT.replace("EXTRA", "100")
#: Returns wrong bytes for objects that the first revision wrote.
FORGETFUL = SECOND.replace('record["by"]', "101")

HEADS = """
from sluice_core.describe import MetricInfo
from sluice_metrics.api import Metric


class Heads(Metric):
    info = MetricInfo("HEADS_SEC", "per_second", "HEAD requests per second")

    def admitted(self, method):
        return 1 if method == "HEAD" else 0
"""

BUSY = """
from sluice_core.control import Assign, Controller, ControllerInfo


class Busy(Controller):
    info = ControllerInfo("busy", metrics=("HEADS_SEC",), help="tags what busy tenants upload")

    def compute_assignments(self, observation):
        for account in observation.values("HEADS_SEC", "tenant"):
            yield Assign(account, "tagging", {"name": "busy", "value": "yes"})
"""


class Rest:
    """Calls of the API as an administrator."""

    def __init__(self, cluster):
        self._place = urlsplit(cluster.api_url)
        self._token = cluster.token

    def __call__(self, method, path, body=None, expect=(200, 201, 202, 204)):
        headers = {"X-Auth-Token": self._token}
        if isinstance(body, str):
            body = body.encode()
            headers["Content-Type"] = "application/octet-stream"
            headers["X-Content-Sha256"] = hashlib.sha256(body).hexdigest()
        elif body is not None:
            body = json.dumps(body)
            headers["Content-Type"] = "application/json"
        connection = http.client.HTTPConnection(self._place.netloc, timeout=60)
        try:
            connection.request(method, f"{self._place.path.rstrip('/')}{path}", body, headers)
            answer = connection.getresponse()
            raw = answer.read()
        finally:
            connection.close()
        assert answer.status in ((expect,) if isinstance(expect, int) else expect), (answer.status, raw)
        return json.loads(raw) if raw else None


@pytest.fixture(scope="module")
def rest(cluster):
    return Rest(cluster)


@pytest.fixture
def shift(rest):
    """The filter in its first revision, in use on all nodes."""
    rest("POST", "/filters", {"keyword": "shift", "environment": "native"})
    made = rest("PUT", "/filters/shift/data?wait=20", FIRST)
    assert made["rollout"]["nodes"] == made["rollout"]["total"] >= 1, made
    yield made
    rest("DELETE", "/filters/shift?force=true")


def stored(cluster, beginning):
    files = [path for folder in cluster.device_folders for path in folder.rglob("*.data")]
    return sum(path.read_bytes().startswith(beginning) for path in files)


def shifted(data, by):
    return bytes((value + by) % 256 for value in data)


def is_enforced(api, policy):
    found = api.policy(policy)["enforced"]
    return found["nodes"] == found["total"] >= 1


@pytest.mark.parametrize("place", ["PROXY", "STORAGE_NODE"])
def test_native_code_is_uploaded_used_revised_and_rolled_back(
    cluster, rest, shift, swift, api, policies, eventually, place
):
    container = f"shifted-{place.lower()}"
    swift.request("PUT", container)
    policy = api.create_policy(f"FOR CONTAINER 'AUTH_test/{container}' DO SET shift WITH by=3 ON {place}")["id"]
    try:
        eventually(lambda: is_enforced(api, policy), 30)
        body = f"{place} one ".encode() + TEXT
        assert swift.request("PUT", f"{container}/one", body).status == 201
        assert stored(cluster, shifted(body[:40], 3)) == 3
        assert swift.request("GET", f"{container}/one").body == body

        made = rest("PUT", "/filters/shift/data?wait=20", SECOND)
        assert made["revision"] == 2
        assert made["rollout"]["nodes"] == made["rollout"]["total"], made
        assert [one["revision"] for one in made["revisions"]] == [1]
        later = f"{place} two ".encode() + TEXT

        def new_code_at_work():
            assert swift.request("PUT", f"{container}/two", later).status == 201
            return stored(cluster, shifted(later[:40], 103)) == 3

        eventually(new_code_at_work, 20)
        for name, data in (("one", body), ("two", later)):
            assert swift.request("GET", f"{container}/{name}").body == data

        back = rest("POST", "/filters/shift/rollback?wait=20", {"revision": 1})
        assert (back["revision"], back["sha256"]) == (3, shift["sha256"])
        third = f"{place} three ".encode() + TEXT

        def old_code_at_work():
            assert swift.request("PUT", f"{container}/three", third).status == 201
            return stored(cluster, shifted(third[:40], 3)) == 3

        eventually(old_code_at_work, 20)
        for name, data in (("one", body), ("two", later), ("three", third)):
            assert swift.request("GET", f"{container}/{name}").body == data
    finally:
        api.delete_policy(policy)


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        ("class Shift(\n", "line 1"),
        ("import django\n" + FIRST, "line 1 imports `django`"),
        ("x = 1\n", "no subclass of Filter"),
        (FIRST.replace('"shift", "filter"', '"shaft", "filter"'), "`shaft`"),
        (FIRST.replace("-record", "record"), "shift"),
        (FORGETFUL, "revision 1"),
    ],
    ids=["syntax", "import", "class", "keyword", "wrong bytes", "cannot read what was written"],
)
def test_broken_code_is_refused_at_upload_and_the_old_stays(rest, shift, code, reason):
    answer = rest("PUT", "/filters/shift/data", code, expect=(400, 409, 422))
    assert reason in json.dumps(answer), answer
    found = rest("GET", "/filters/shift")
    assert (found["revision"], found["sha256"]) == (1, shift["sha256"])


def test_tenants_cannot_reach_the_code(cluster, rest, shift, swift):
    project, _, owner = CODE_USER.partition(":")
    key = cluster.layout.code_key_file.read_text().strip()
    code = swift_client(cluster.proxy_url, KeystoneHttp(cluster.keystone_url).login(owner, key, project))
    account = code.account
    assert code.request("HEAD", f"sluice-code/{shift['sha256']}").status == 200
    stranger = http.client.HTTPConnection(swift.address, timeout=30)
    try:
        for headers, refusal in (({"X-Auth-Token": swift.token}, 403), ({}, 401)):
            stranger.request("GET", f"{account}/sluice-code/{shift['sha256']}", headers=headers)
            answer = stranger.getresponse()
            answer.read()
            assert answer.status == refusal
    finally:
        stranger.close()
        code.close()


class Heading:
    """Continuous HEAD requests."""

    def __init__(self, swift):
        self._swift = swift
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def _run(self):
        while not self._over.wait(0.05):
            try:
                self._swift.request("HEAD", "headed/o")
            except PeerError:
                continue
        self._swift.close()

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._over.set()
        self._thread.join()


@pytest.fixture
def heads(rest, swift):
    """The metric HEADS_SEC, measured; and an object."""
    swift.request("PUT", "headed")
    swift.request("PUT", "headed/o", b"here")
    rest("PUT", "/registry/metrics/HEADS_SEC/data", HEADS)
    rest("POST", "/registry/metrics/HEADS_SEC/start?wait=20")
    yield
    rest("POST", "/registry/metrics/HEADS_SEC/stop")
    rest("DELETE", "/registry/metrics/HEADS_SEC")


def test_a_policy_fires_on_an_uploaded_metric(rest, heads, swift, api, eventually):
    nodes = rest("GET", "/registry/metrics/HEADS_SEC/instances")
    assert nodes, nodes
    sentence = "FOR TENANT AUTH_test WHEN HEADS_SEC > 2 DO SET tagging WITH name=headed value=yes TRANSIENT"
    policy = api.create_policy(sentence)["id"]
    try:
        with Heading(swift):
            eventually(lambda: api.policy(policy)["state"] == "active", 30)
        eventually(lambda: api.policy(policy)["state"] == "waiting", 30)
        refused = rest("DELETE", "/registry/metrics/HEADS_SEC", expect=409)
        assert policy in json.dumps(refused)
    finally:
        api.delete_policy(policy)


def test_a_controller_sets_and_takes_back_for_the_whole_cluster(rest, heads, swift, eventually):
    made = rest("PUT", "/controllers/busy/data", BUSY)
    try:
        assert made["running"] is False
        rest("POST", "/controllers/busy/start")

        def in_force():
            found = rest("GET", "/effective?target=AUTH_test/headed/o&method=PUT")
            return "controller:busy" in json.dumps(found)

        def reported():
            (instance,) = rest("GET", "/controllers/busy/instances")["instances"]
            return (instance["state"], instance["revision"], instance["assignments"]) == ("running", 1, 1)

        with Heading(swift):
            eventually(in_force, 40)
            eventually(reported, 40)
            swift.request("PUT", "headed/tagged", b"while busy")
            assert swift.request("HEAD", "headed/tagged").headers.get("x-object-meta-busy") == "yes"
        eventually(lambda: not in_force(), 30)
        with Heading(swift):
            eventually(in_force, 40)
            rest("POST", "/controllers/busy/stop")
            assert not in_force()
        eventually(lambda: not rest("GET", "/controllers/busy/instances")["instances"], 20)
    finally:
        rest("DELETE", "/controllers/busy")
