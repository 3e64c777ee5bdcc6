"""A real Keystone authenticates users, for the API and for Swift.

Given the projects acme and umbrella with a member, a reader and an administrator, the administrator names
projects by name, a member manages its own containers, and roles that Keystone revokes are soon refused.
"""

import http.client
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import requests
import yaml
from keystoneauth1.adapter import Adapter
from keystoneauth1.identity import v3
from keystoneauth1.session import Session
from tests.support.sandbox.process import compiled
from tests.support.tempest_run import FEATURES, PLUGIN, SUCCESS, Tempest

from sluice_aio.base.layout import Layout
from sluice_aio.base.setup import KEYSTONE, Setup
from sluice_aio.cluster.cluster import Cluster
from sluice_aio.cluster.disks import stored_sizes
from sluice_aio.keystone import seed
from sluice_aio.keystone.http import DOMAIN, KeystoneHttp, swift_client
from sluice_aio.keystone.seed import BELIEVED
from sluice_client import ApiError, Client
from sluice_core.store.store import Store
from sluice_metric_history.operations import forget_series, write_series
from sluice_metric_history.records import SeriesRecord

ASKED = "req-01234567-89ab-cdef-0123-456789abcdef"
OWN = "FOR CONTAINER acme/logs DO SET compression"
TEXT = b"".join(b"%d: the quick brown fox jumps over the lazy dog\n" % n for n in range(20_000))


@pytest.fixture(scope="module")
def cluster():
    folder = Path(tempfile.mkdtemp(prefix="sluice-"))
    setup = Setup(auth=KEYSTONE, api_options={"self_service": "compression, noop", "workers": "1"})
    try:
        with Cluster(Layout.free(folder), setup=setup) as running:
            yield running
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="module")
def login(cluster):
    """A function that returns a new token of a user."""
    keystone = KeystoneHttp(cluster.keystone_url)

    def take(user):
        if user == seed.ADMIN:
            return keystone.login(user, seed.password(cluster.layout, user), "admin")
        password, project, _ = seed.PEOPLE[user]
        return keystone.login(user, password, project)

    return take


@pytest.fixture(scope="module")
def api(cluster, login):
    """A function that returns the API for a user."""
    known = {}

    def client(user):
        if user not in known:
            known[user] = Client(cluster.api_url, login(user).id)
        return known[user]

    yield client
    for one in known.values():
        one.close()


@pytest.fixture
def policies(api):
    """Creates policies as a user, and deletes them afterwards."""
    made = []

    def create(user, sentence):
        created = api(user).create_policy(sentence, wait=10)
        made.append(created["id"])
        return created

    yield create
    for policy_id in made:
        api("admin").delete_policy(policy_id)


def refused(call):
    with pytest.raises(ApiError) as caught:
        call()
    return caught.value.status, str(caught.value)


def ask(cluster, token, path="/policies"):
    """Status and headers of a request without retries."""
    connection = http.client.HTTPConnection(urlsplit(cluster.api_url).netloc, timeout=30)
    try:
        connection.request("GET", path, headers={"X-Auth-Token": token, "X-Roles": "admin", "X-Project-Id": "x"})
        answer = connection.getresponse()
        answer.read()
        return answer.status, dict(answer.getheaders())
    finally:
        connection.close()


def test_an_administrator_names_projects_and_the_ids_are_kept_with_the_names(policies, login, api):
    acme = f"AUTH_{login('alice').project_id}"
    made = policies("admin", "FOR CONTAINER acme/docs DO SET noop")
    assert made["target"] == {"level": "container", "select": "name", "name": f"{acme}/docs", "label": "acme/docs"}
    assert made["created_by"] == "admin@admin"
    assert [one["id"] for one in api("admin").policies(tenant="acme")] == [made["id"]]
    by_account = policies("admin", f"FOR CONTAINER {acme}/other DO SET noop")
    assert by_account["target"]["name"] == f"{acme}/other"
    status, text = refused(lambda: api("admin").create_policy("FOR TENANT acne DO SET noop"))
    assert status == 400
    assert "there is no project `acne`" in text


@pytest.fixture
def sluice(cluster, tmp_path):
    """A function that runs ``sluice`` in the cloud ``acme`` of a clouds.yaml as docs/cli/habits.md does, as alice."""
    password, project, _ = seed.PEOPLE["alice"]
    who = {"username": "alice", "password": password, "project_name": project}
    auth = {"auth_url": cluster.keystone_url, **who, "user_domain_id": DOMAIN, "project_domain_id": DOMAIN}
    (tmp_path / "clouds.yaml").write_text(yaml.safe_dump({"clouds": {"acme": {"auth": auth}}}))
    bare = {name: value for name, value in os.environ.items() if not name.startswith(("OS_", "SLUICE_"))}

    def run(*words, status=0):
        command = [sys.executable, "-m", "sluice_client", "--os-cloud", "acme", *words]
        env = {**bare, "OS_CLIENT_CONFIG_FILE": str(tmp_path / "clouds.yaml")}
        done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=60)
        assert done.returncode == status, done
        return done

    return run


def test_a_tenant_needs_one_command_and_a_cloud(sluice, login, api):
    acme = f"AUTH_{login('alice').project_id}"
    made = json.loads(sluice("policy", "create", OWN, "--wait", "--json").stdout)
    assert [one["target"]["name"] for one in made] == [f"{acme}/logs"]
    assert made[0]["id"] in sluice("policy", "list").stdout
    assert api("alice").policy(made[0]["id"])["created_by"] == "alice@acme"
    for target in ("acme/logs", "CONTAINER acme/logs", f"{acme}/logs"):
        assert f"no daemon keeps a space `{acme}/logs`" in sluice("space", "show", target, status=1).stderr
    assert "(HTTP 403)" in sluice("node", "list", status=1).stderr
    assert sluice("policy", "delete", made[0]["id"]).stdout == f"policy {made[0]['id']} is deleted\n"


def test_keystoneauth_discovers_the_api_by_the_catalogue(cluster):
    password, project, _ = seed.PEOPLE["alice"]
    login = v3.Password(
        auth_url=cluster.keystone_url,
        username="alice",
        password=password,
        project_name=project,
        user_domain_id=DOMAIN,
        project_domain_id=DOMAIN,
    )
    with requests.Session() as connections:
        known = {"service_type": "sluice", "interface": "public", "region_name": "RegionOne"}
        found = Adapter(Session(login, session=connections), **known, min_version="1", max_version="1.latest")
        data = found.get_endpoint_data()
        assert (data.api_version, data.url) == ((1, 0), f"{cluster.api_url}/")
        assert found.get_api_major_version() == (1, 0)
        answer = found.get("/policies", headers={"X-Openstack-Request-Id": ASKED})
        assert answer.json()["policies"] == []
        assert answer.headers["X-Openstack-Request-Id"] == ASKED


def test_a_member_is_told_what_it_may_do_and_nothing_of_others(api, login):
    alice = api("alice")
    own = alice.permissions("acme/logs")
    assert (own["policies:create"], own == alice.permissions(f"AUTH_{login('alice').project_id}/logs")) == (True, True)
    assert not alice.permissions("acme/logs", filter="encryption")["policies:create"]
    assert not alice.permissions("acme")["policies:create"]
    assert alice.permissions("umbrella/logs") == alice.permissions("nobody/logs") == dict.fromkeys(own, False)
    assert not alice.permissions()["nodes:list"]
    assert alice.overview()["cluster"] is None
    assert all(api("admin").permissions("umbrella/logs", stereotype="x").values())


def test_the_history_of_a_project_that_is_no_more_is_forgotten(cluster, login, api):
    acme, gone = f"AUTH_{login('alice').project_id}", f"AUTH_{'0' * 32}"
    store, now = Store(cluster.redis_url), int(time.time())
    try:
        # of a metric that is not measured here, so that no other process writes it
        made = [
            SeriesRecord(f"test{number}", "POOL_USED", "tenant", path, 60, now)
            for number, path in enumerate((acme, gone))
        ]
        store.run(write_series(store.keys, made))
        assert [one["target"] for one in api("admin").metric_series("POOL_USED")] == [acme]
        assert not store.client.keys("*:metric_points:60:test1")
        assert [one["target"] for one in api("rita").metric_series("POOL_USED")] == [acme]
        assert list(api("ulf").metric_series("POOL_USED")) == []
    finally:
        store.run(forget_series(store.keys, made))
        store.close()


def test_what_a_member_uploads_under_its_own_policy_is_stored_compressed(cluster, policies, login):
    made = policies("alice", OWN)
    assert made["created_by"] == "alice@acme"
    assert made["enforced"]["nodes"] == made["enforced"]["total"] == 1
    swift = swift_client(cluster.proxy_url, login("alice"))
    assert swift.request("PUT", "logs").status in (201, 202)
    assert swift.request("PUT", "logs/text", TEXT).status == 201
    (row,) = swift.listing("logs")
    assert row["bytes"] == len(TEXT)
    stored = stored_sizes(cluster.device_folders, f"AUTH_{login('alice').project_id}/logs")["text"]
    assert len(stored) == 3
    assert max(stored) < len(TEXT) / 5
    assert swift.request("GET", "logs/text").body == TEXT
    reader = swift_client(cluster.proxy_url, login("rita"))
    assert reader.request("GET", "logs/text").body == TEXT
    assert reader.request("PUT", "logs/other", b"x").status == 403
    stranger = swift_client(cluster.proxy_url, login("ulf"))
    stranger.account = swift.account
    assert stranger.request("GET", "logs/text").status == 403


def test_a_registered_filter_is_kept_behind_keystone_and_marked_for_members(cluster, api, policies, login, eventually):
    scramble = {
        "keyword": "wscramble",
        "environment": "wasm",
        "language": "wasm",
        "main": "xor",
        "reverse": True,
        "capabilities": {"changes_length": False, "stage": 450},
        "parameters": [{"name": "key", "type": "int", "minimum": 0, "maximum": 255, "default": 90}],
    }
    sentence = "FOR CONTAINER acme/secrets DO SET wscramble"
    api("admin").register_filter(scramble)
    assert refused(lambda: api("alice").upload_filter("wscramble", compiled("xor")))[0] == 403
    api("admin").upload_filter("wscramble", compiled("xor"), wait=10)
    assert "which `wscramble` is not" in refused(lambda: api("alice").create_policy(sentence))[1]
    marked = requests.put(
        f"{cluster.api_url}/filters/wscramble",
        json={"self_service": True},
        headers={"X-Auth-Token": login("admin").id},
        timeout=30,
    )
    assert marked.json()["self_service"] is True
    made = policies("alice", sentence)["id"]
    eventually(lambda: api("alice").policy(made)["enforced"]["nodes"] == 1, limit=20)
    swift = swift_client(cluster.proxy_url, login("alice"))
    assert swift.request("PUT", "secrets").status in (201, 202)
    assert swift.request("PUT", "secrets/text", TEXT).status == 201
    assert swift.request("GET", "secrets/text").body == TEXT
    (path,) = {path for path in cluster.layout.device("object1").rglob("*.data") if path.stat().st_size == len(TEXT)}
    assert TEXT[:100] not in path.read_bytes()


REFUSED = [
    ("alice", "FOR CONTAINER umbrella/logs DO SET compression", "the token's own project"),
    ("alice", "FOR TENANT acme DO SET compression", "one container or object"),
    ("alice", "FOR CONTAINER acme/logs DO SET encryption", "which `encryption` is not"),
    ("ulf", OWN, "the token's own project"),
    ("rita", OWN, "role `member`"),
]


@pytest.mark.parametrize(("user", "sentence", "text"), REFUSED)
def test_what_is_not_a_members_own_or_not_self_service_is_refused(api, user, sentence, text):
    status, said = refused(lambda: api(user).create_policy(sentence))
    assert status == 403
    assert f"`sluice:policies:create` is not allowed to `{user}@" in said
    assert text in said


def test_everybody_sees_ones_own_and_only_an_administrator_the_cluster(api, policies):
    mine = policies("alice", OWN)["id"]
    other = policies("ulf", "FOR CONTAINER umbrella/logs DO SET compression")["id"]
    assert {one["id"] for one in api("rita").policies()} == {mine}
    assert {one["id"] for one in api("ulf").policies()} == {other}
    assert {one["id"] for one in api("ada").policies(page=1)} == {mine, other}
    assert refused(lambda: api("rita").policy(other))[0] == 403
    assert refused(lambda: api("alice").nodes())[0] == 403
    assert len(api("admin").nodes()) == 1


def test_headers_that_claim_an_identity_gain_nothing(cluster, login):
    assert ask(cluster, "")[0] == 401
    status, headers = ask(cluster, "nonsense")
    assert status == 401
    assert headers["WWW-Authenticate"] == f'Keystone uri="{cluster.keystone_url}"'
    assert ask(cluster, login("rita").id, "/nodes")[0] == 403


@pytest.mark.probe
def test_a_revoked_token_is_refused_once_the_cache_has_forgotten_it(cluster, login, eventually):
    token = login("alice")
    assert ask(cluster, token.id)[0] == 200
    KeystoneHttp(cluster.keystone_url).revoke(token)
    eventually(lambda: ask(cluster, token.id)[0] == 401, limit=BELIEVED + 20)


def test_keystone_away_is_503_and_tokens_in_the_cache_go_on(cluster, login, eventually):
    known, unknown = login("alice").id, login("alice").id
    assert ask(cluster, known)[0] == 200
    cluster.kill("keystone")
    try:
        assert ask(cluster, known)[0] == 200
        status, headers = ask(cluster, unknown)
        assert status == 503
        assert int(headers["Retry-After"]) >= 1
        assert ask(cluster, "", "/health")[0] == 200
        assert ask(cluster, "nonsense")[0] == 503
    finally:
        cluster.restart("keystone")
    eventually(lambda: ask(cluster, unknown)[0] == 200, limit=20)


@pytest.mark.probe
def test_tempest_finds_the_plugin_and_runs_a_scenario(cluster, api, tmp_path):
    tempest = Tempest(cluster, tmp_path, dict.fromkeys(FEATURES, "true"))
    assert PLUGIN in tempest.plugins()
    outcomes, said = tempest.run(rf"{PLUGIN}\.tests\.scenario\.test_compressed_object")
    assert [one.status for one in outcomes] == [SUCCESS] * 3, said
    assert list(api("admin").policies()) == []


def test_no_log_of_ours_holds_a_secret(cluster, login):
    token = login("alice").id
    ask(cluster, token)
    secrets = [token, *(seed.password(cluster.layout, one) for one in (*seed.SERVICES, "admin"))]
    for name in ("api", "agent", "actors"):
        text = cluster.log(name)
        assert not [one for one in secrets if one in text]
