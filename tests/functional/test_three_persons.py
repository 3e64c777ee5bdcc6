"""One journey of each capability as a member, as an administrator, and as a member of another project.

Alice is a member of the project acme, ada is administrator in it and so of the cluster, ulf is a member of another
project. Each of them requests data of acme's account, where alice has prepared them; the tables have the expected
responses. Where a journey says so, the containers are open to all readers: then ulf gets what others get.
"""

import contextlib
import json
from dataclasses import dataclass

import pytest
from botocore.exceptions import ClientError
from tests.support.cluster.motifs import FIRST, WHOLE, is_contracted, motif, put
from tests.support.cluster.people import login, s3_keys
from tests.support.cluster.rewrites import rewrite
from tests.support.cluster.s3_differential import client_of

from sluice_aio.cluster.disks import stored_sizes
from sluice_aio.keystone.http import swift_client
from sluice_client import ApiError, Client

PEOPLE = ("alice", "ada", "ulf")
TABLE = b"id,town,secret\n1,Bern,x\n2,Thun,y\n"
OPEN = {"x_container_read": ".r:*"}


@dataclass
class Person:
    """A user's Swift, with requests for acme's account, API and keys of S3."""

    swift: object
    api: Client
    keys: tuple

    def told(self, call, *arguments, **named):
        """The status of the API's response."""
        try:
            call(*arguments, **named)
        except ApiError as error:
            return error.status
        return 200


@pytest.fixture(scope="module")
def people(cluster):
    with contextlib.ExitStack() as stack:
        tokens = {name: login(cluster, name) for name in PEOPLE}
        found = {}
        for name, token in tokens.items():
            swift = swift_client(cluster.proxy_url, token)
            swift.account = f"/v1/AUTH_{tokens['alice'].project_id}"
            stack.callback(swift.close)
            api = stack.enter_context(Client(cluster.api_url, token.id))
            found[name] = Person(swift, api, s3_keys(cluster, name))
        yield found


@pytest.fixture
def alice(people):
    return people["alice"].swift


@pytest.fixture(scope="module")
def acme(people):
    return people["alice"].swift.account.rpartition("/")[2]


@pytest.fixture
def said(people):
    """Create a policy as a user; return the status, and delete it afterwards."""
    made = []

    def say(who, sentence):
        try:
            made.append(people[who].api.create_policy(sentence, wait=10)["id"])
        except ApiError as error:
            return error.status
        return 201

    yield say
    for policy in made:
        people["ada"].api.delete_policy(policy)


@pytest.mark.parametrize(
    ("who", "statuses"), [("alice", (201, 201, 200)), ("ada", (201, 201, 200)), ("ulf", (403, 403, 403))]
)
def test_filters(cluster, people, alice, acme, said, who, statuses):
    container, swift = f"three-filters-{who}", people[who].swift
    put(alice, container)
    put(alice, f"{container}/before", WHOLE)
    policy = said(who, f"FOR CONTAINER acme/{container} DO SET compression")
    uploaded = swift.request("PUT", f"{container}/o", WHOLE).status
    read = swift.request("GET", f"{container}/before")
    assert (policy, uploaded, read.status) == statuses
    assert (read.body == WHOLE) == (read.status == 200)
    stored = stored_sizes(cluster.device_folders, f"{acme}/{container}")
    assert set(stored["before"]) == {len(WHOLE)}
    assert ("o" in stored) == (uploaded == 201)
    assert all(size < len(WHOLE) / 5 for size in stored.get("o", ()))


def concat(account, container):
    return {"of": f"{account}/{container}/first,{account}/{container}/second"}


@pytest.fixture
def derived(motifs, alice, acme):
    """Create a container with two sources and an object of both."""

    def make(container, **headers):
        put(alice, container, **headers)
        put(alice, f"{container}/first", FIRST)
        put(alice, f"{container}/second", WHOLE[len(FIRST) :])
        put(alice, f"{container}/o", WHOLE)
        return concat(acme, container)

    return make


@pytest.fixture
def rest(eventually, acme):
    """Attach the motif to the object of a container, or contract it, by REST; return the status.

    It waits for a lease, which a Redis that was just started does not grant for some seconds.
    """

    def ask(person, container, params=None):
        path = (acme, container, "o")
        if params:
            return granted(lambda: person.told(person.api.attach_motif, *path, "concat", params))
        return granted(lambda: person.told(person.api.act_on_motif, *path, "contract", wait=10))

    def granted(call):
        return eventually(lambda: (status := call()) not in (409, 503) and status, limit=30)

    return ask


@pytest.mark.parametrize(
    ("who", "statuses"), [("alice", (201, 200, 200)), ("ada", (201, 200, 200)), ("ulf", (403, 403, 403))]
)
def test_motifs(cluster, people, acme, derived, rest, who, statuses):
    container, person = f"three-motifs-{who}", people[who]
    params = derived(container)
    upload = person.swift.request("PUT", f"{container}/own", WHOLE, x_object_motif=motif("concat", **params))
    attached = rest(person, container, params)
    rest(people["alice"], container, params)
    assert rest(person, container) == attached
    rest(people["alice"], container)
    assert is_contracted(cluster, f"{container}/o", acme)
    read = person.swift.request("GET", f"{container}/o")
    assert (upload.status, attached, read.status) == statuses
    assert (read.body == WHOLE) == (read.status == 200)


@pytest.mark.parametrize(("who", "knows"), [("alice", True), ("ada", True), ("ulf", False), ("nobody", False)])
def test_why_a_motif_fails(people, alice, derived, rest, who, knows):
    container = f"three-gone-{who}"
    params = derived(container, **OPEN)
    assert rest(people["alice"], container, params) == rest(people["alice"], container) == 200
    assert alice.request("DELETE", f"{container}/first").status == 204
    token = {} if who == "nobody" else {"X-Auth-Token": people[who].swift.token}
    answer = alice.raw("GET", f"{alice.account}/{container}/o", token)
    assert (answer.status, answer.headers["retry-after"]) == (503, "5")
    assert (f"{container}/first".encode() in answer.body) == knows, answer.body


@pytest.fixture(scope="module")
def rewriter(cluster):
    cluster.add({"rewriter"})
    yield
    cluster.remove("rewriter")


@pytest.mark.parametrize(("who", "statuses"), [("alice", (403, 200)), ("ada", (200, 200)), ("ulf", (403, 403))])
def test_rewrites(cluster, rewriter, people, alice, acme, said, who, statuses):
    container, person = f"three-rewrites-{who}", people[who]
    put(alice, container)
    put(alice, f"{container}/o", WHOLE)
    assert said("ada", f"FOR CONTAINER acme/{container} DO SET compression") == 201
    ordered = person.told(lambda: rewrite(person.api, f"{acme}/{container}", "policies"))
    (size,) = set(stored_sizes(cluster.device_folders, f"{acme}/{container}")["o"])
    assert (size < len(WHOLE) / 5) == (ordered == 200)
    read = person.swift.request("GET", f"{container}/o")
    assert (ordered, read.status) == statuses
    assert (read.body == WHOLE) == (read.status == 200)


@pytest.mark.parametrize(
    ("who", "statuses"), [("alice", (201, 200, 200)), ("ada", (201, 200, 200)), ("ulf", (403, 403, 200))]
)
def test_csv_select(people, alice, said, who, statuses):
    """A policy removes a column for all readers, also for those with rights from an access list."""
    container, swift = f"three-tables-{who}", people[who].swift
    put(alice, container)
    put(alice, f"{container}/t.csv", TABLE, content_type="text/csv")
    sentence = f"FOR CONTAINER acme/{container} DO SET csv_select WITH columns='id,town'"
    policy = said(who, sentence)
    if policy != 201:
        assert said("ada", sentence) == 201
    shut = swift.request("GET", f"{container}/t.csv")
    assert alice.request("POST", container, **OPEN).status == 204
    opened = swift.request("GET", f"{container}/t.csv")
    assert (policy, shut.status, opened.status) == statuses
    assert opened.body == b"id,town\n1,Bern\n2,Thun\n"
    assert b"Bern" not in shut.body or shut.status == 200


@pytest.mark.parametrize(
    ("who", "answer"), [("alice", b"1,Bern\n2,Thun\n"), ("ada", "AccessDenied"), ("ulf", "NoSuchBucket")]
)
def test_s3_select(cluster, people, who, answer):
    """S3's own access lists apply here: a bucket belongs to its creator, and that of another project is not seen."""
    bucket = f"three-select-{who}"
    with contextlib.ExitStack() as stack:
        mine, client = (client_of(cluster.proxy_url, *people[name].keys) for name in ("alice", who))
        stack.callback(mine.close)
        stack.callback(client.close)
        mine.create_bucket(Bucket=bucket)
        mine.put_object(Bucket=bucket, Key="t.csv", Body=TABLE)
        try:
            events = client.select_object_content(
                Bucket=bucket,
                Key="t.csv",
                Expression="SELECT s.id, s.town FROM S3Object s",
                ExpressionType="SQL",
                InputSerialization={"CSV": {"FileHeaderInfo": "USE"}},
                OutputSerialization={"CSV": {}},
            )["Payload"]
            got = b"".join(one["Records"]["Payload"] for one in events if "Records" in one)
        except ClientError as error:
            got = error.response["Error"]["Code"]
    assert got == answer


@pytest.mark.parametrize(
    ("who", "statuses"), [("alice", (201, 200, 204)), ("ada", (201, 200, 204)), ("ulf", (403, 403, 403))]
)
def test_versions(people, alice, said, who, statuses):
    container, swift = f"three-versions-{who}", people[who].swift
    put(alice, container, x_versions_enabled="true")
    assert said("ada", f"FOR CONTAINER acme/{container} DO SET compression") == 201
    put(alice, f"{container}/o", FIRST)
    listed = alice.raw("GET", f"{alice.account}/{container}?versions&format=json", {"X-Auth-Token": alice.token})
    (row,) = json.loads(listed.body)
    written = swift.request("PUT", f"{container}/o", WHOLE).status
    old = f"{swift.account}/{container}/o?version-id={row['version_id']}"
    read = swift.raw("GET", old, {"X-Auth-Token": swift.token})
    deleted = swift.raw("DELETE", old, {"X-Auth-Token": swift.token}).status
    assert (written, read.status, deleted) == statuses
    assert (read.body == FIRST) == (read.status == 200)
    assert alice.request("GET", f"{container}/o").body == (WHOLE if written == 201 else FIRST)


@pytest.mark.parametrize(("who", "policy", "sees"), [("alice", 403, "own"), ("ada", 201, "all"), ("ulf", 403, "none")])
def test_bandwidth(people, alice, acme, said, swift, eventually, who, policy, sees):
    """Who may set objectives, and whose flows each sees, while two accounts are read."""
    sentence = "FOR TENANT acme DO SET bandwidth WITH max_get_bw=50MBps"
    assert said(who, sentence) == policy
    if policy != 201:
        assert said("ada", sentence) == 201
    for reader in (alice, swift):
        put(reader, "three-flows")
        put(reader, "three-flows/o", WHOLE)

    def accounts(name):
        for reader in (alice, swift):
            assert reader.request("GET", "three-flows/o").body == WHOLE
        return {row["account"] for row in people[name].api.collection("/bw/flows").list()}

    both = {acme, "AUTH_test"}
    eventually(lambda: accounts("ada") >= both, limit=20)
    shown = {"own": {acme}, "all": both, "none": set()}[sees]
    eventually(lambda: accounts(who) & both == shown, limit=20)
    assert who == "ada" or accounts(who) <= shown
