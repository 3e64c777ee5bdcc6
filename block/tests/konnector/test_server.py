"""The API over TLS: it needs a certificate and a token."""

import http.client
import json
import re
import socket
import ssl

import pytest
from werkzeug.test import Client

from sluice_aio.base.ports import free_port
from sluice_aio.cinder.konnector import ensure_certificate
from sluice_block.konnector.api import KonnectorApi
from sluice_block.konnector.https_api import (
    AuthenticatedApi,
    Forbidden,
    HttpsServer,
    Unauthorized,
    make_server,
    parse_bind,
)
from sluice_block.konnector.konnector import Konnector
from sluice_core.errors import PeerError
from sluice_core.options import OptionError

pytestmark = pytest.mark.service
GIVEN = "req-01234567-89ab-cdef-0123-456789abcdef"
REFUSED = {"": Unauthorized, "member": Forbidden, "away": PeerError}


class FakeTokens:
    def check(self, token):
        if token in REFUSED:
            raise REFUSED[token]("the reason")


@pytest.fixture
def api(tmp_path):
    konnector = Konnector(*(tmp_path / name for name in ("state", "run", "built", "logs")))
    return AuthenticatedApi(KonnectorApi(konnector, "node1", "192.0.2.7"), FakeTokens())


@pytest.fixture
def files(tmp_path):
    made = tmp_path / "k.crt", tmp_path / "k.key"
    ensure_certificate(*made)
    return made


@pytest.mark.parametrize(("token", "status"), [("", 401), ("member", 403), ("away", 503), ("service", 200)])
def test_a_refusal_has_its_status_and_the_reason(api, token, status):
    answer = Client(api).get("/health", headers={"X-Auth-Token": token} if token else {})
    assert answer.status_code == status
    assert ("WWW-Authenticate" in answer.headers) is (status == 401)
    if status == 200:
        assert (answer.json["node"], answer.json["ip"]) == ("node1", "192.0.2.7")
        assert answer.json["host"] == socket.gethostname()
    else:
        assert answer.json == {"error": "the reason"}


def test_the_id_of_a_known_caller_s_request_is_kept_and_another_is_made_for_others(api):
    def said(**headers):
        return Client(api).get("/health", headers={"X-Openstack-Request-Id": GIVEN, **headers})

    assert said(**{"X-Auth-Token": "service"}).headers["X-Openstack-Request-Id"] == GIVEN
    refused = said(**{"X-Auth-Token": "member"}).headers["X-Openstack-Request-Id"]
    assert re.fullmatch(r"req-[0-9a-f-]{36}", refused)
    assert refused != GIVEN


def test_it_speaks_tls_of_today_with_its_certificate(api, files):
    port = free_port()
    server = HttpsServer(("127.0.0.1", port), api, *files)
    server.start()
    try:
        trusting = ssl.create_default_context(cafile=files[0])
        connection = http.client.HTTPSConnection("127.0.0.1", port, timeout=10, context=trusting)
        connection.request("GET", "/connector", headers={"X-Auth-Token": "service"})
        found = json.loads(connection.getresponse().read())
        connection.close()
        assert (found["ip"], found["host"], found["os_type"]) == ("192.0.2.7", socket.gethostname(), "linux")
        old = ssl.create_default_context(cafile=files[0])
        old.minimum_version = old.maximum_version = ssl.TLSVersion.TLSv1_2
        old.set_ciphers("AES128-SHA")  # without forward secrecy or authenticated encryption: never chosen
        for refused in (ssl.create_default_context(), old):
            with (
                socket.create_connection(("127.0.0.1", port), timeout=10) as plain,
                pytest.raises((ssl.SSLError, OSError)),
            ):
                refused.wrap_socket(plain, server_hostname="127.0.0.1")
    finally:
        server.stop()


@pytest.mark.parametrize("text", ["8790", "host", "host:", "host:port", ":8790", "host:99999"])
def test_an_address_that_is_none_is_refused(text):
    with pytest.raises(OptionError, match="expected host:port"):
        parse_bind(text)
    assert parse_bind("[::1]:8790") == ("::1", 8790)


def test_a_certificate_that_cannot_be_used_is_refused_by_the_names_of_its_options(api, files, tmp_path):
    with pytest.raises(OptionError, match="`tls_cert` and `tls_key`"):
        HttpsServer(("127.0.0.1", 1), api, files[0], tmp_path / "missing")
    with pytest.raises(OptionError, match="option `tls_cert` is empty"):
        make_server({"bind": "127.0.0.1:1", "tls_cert": ""}, api, tmp_path)
