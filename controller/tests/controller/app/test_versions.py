"""``GET /``, by which keystoneauth discovers the API, also below a prefix."""

import contextlib

import pytest
import requests
from keystoneauth1 import adapter, discover, session, token_endpoint
from tests.support.controller.api_server import ApiServer, prefix_proxy

from sluice_aio.base.ports import free_port

pytestmark = pytest.mark.service
PREFIX = "/storage-policies"
PUBLIC = "api.example.org"


def link(answer):
    """The URL of the only version."""
    (version,) = answer.json()["versions"]
    assert (version["id"], version["status"]) == ("v1.0", "CURRENT")
    (only,) = version["links"]
    assert only["rel"] == "self"
    return only["href"]


def test_the_versions_need_no_token(api):
    del api.defaults["HTTP_X_AUTH_TOKEN"]
    answer = api.get("/")
    assert answer.status_code == 200
    assert link(answer) == "http://testserver/"
    assert api.head("/").status_code == 200


def test_a_prefix_of_the_wsgi_server_stands_in_links_and_locations(api):
    assert link(api.get("/", SCRIPT_NAME=PREFIX, HTTP_HOST=PUBLIC)) == f"http://{PUBLIC}{PREFIX}/"
    body = {"policy": "FOR TENANT AUTH_a DO SET noop"}
    made = api.post("/policies", body, format="json", SCRIPT_NAME=PREFIX)
    assert made.headers["Location"] == f"{PREFIX}/policies/{made.json()['id']}"
    missing = api.get("/nothing", SCRIPT_NAME=PREFIX)
    assert f"`{PREFIX}/nothing`" in missing.json()["error"]["message"]


@pytest.mark.parametrize("host", ["a b", "x/y", "u@x", "a\\b"])
def test_a_host_that_is_none_is_refused(api, host):
    answer = api.get("/", HTTP_HOST=host)
    assert answer.status_code == 400
    assert "`Host`" in answer.json()["error"]["message"]


@contextlib.contextmanager
def adapter_of(url, token_file):
    with requests.Session() as connections:
        auth = token_endpoint.Token(url, token_file.read_text().strip())
        yield adapter.Adapter(session.Session(auth, session=connections), service_type="sluice")


@pytest.fixture(scope="module")
def server(tmp_path_factory, token_file):
    """An API behind a proxy; it needs no Redis for this document."""
    nowhere = f"redis://127.0.0.1:{free_port()}/0"
    options = {"needs_redis": False, "enable_proxy_headers_parsing": "true", "workers": "1"}
    with ApiServer(tmp_path_factory.mktemp("api"), nowhere, token_file, **options) as running:
        yield running


def test_keystoneauth_discovers_the_version(server, token_file):
    with adapter_of(server.url, token_file) as found:
        data = found.get_endpoint_data()
        assert (data.api_version, data.url.rstrip("/")) == ((1, 0), server.url)
        assert found.get_api_major_version() == (1, 0)
        assert "openapi" in found.get("/schema").json()


def test_keystoneauth_finds_no_other_version(server, token_file):
    with adapter_of(server.url, token_file) as found:
        discovered = discover.Discover(found.session, server.url, authenticated=False)
        assert discovered.url_for("1.0") == f"{server.url}/"
        assert discovered.url_for("2") is None


def test_links_are_the_proxy_s_where_its_headers_are_believed(server):
    with prefix_proxy(server.port, PREFIX, "https", PUBLIC) as url:
        assert link(requests.get(f"{url}/", timeout=10)) == f"https://{PUBLIC}{PREFIX}/"


def test_keystoneauth_discovers_and_uses_the_api_below_the_prefix_of_a_proxy(server, token_file):
    with (
        prefix_proxy(server.port, PREFIX) as url,
        adapter_of(url, token_file) as found,
    ):
        data = found.get_endpoint_data()
        assert (data.api_version, data.url) == ((1, 0), f"{url}/")
        assert found.get_api_major_version() == (1, 0)
        assert "openapi" in found.get("/schema").json()
