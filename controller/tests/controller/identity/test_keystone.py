"""Keystone's middleware before Django, and errors of its options (the functional tests have a Keystone)."""

import io

import pytest

from sluice_aio.base.ports import free_port
from sluice_controller.app.checks import faults
from sluice_controller.app.cli import main
from sluice_controller.config import Config
from sluice_controller.identity.caller import AWAY, CHALLENGE, IDENTITY
from sluice_controller.identity.projects import REMEMBERED, ProjectAccounts
from sluice_core.errors import CallerError, PeerError

# modules of the standard library that keystonemiddleware imports
pytestmark = pytest.mark.filterwarnings("ignore:'cgi' is deprecated:DeprecationWarning")

GOOD = """\
[api]
auth = keystone
bind = 0.0.0.0:8877
[keystone_authtoken]
auth_type = password
auth_url = http://127.0.0.1:{port}/v3
username = sluice
password = very-secret
user_domain_id = default
project_name = service
project_domain_id = default
http_request_max_retries = 0
"""


@pytest.fixture
def written(tmp_path):
    """A function that writes a configuration and reads it."""

    def write(text=GOOD, mode=0o640):
        path = tmp_path / "api.conf"
        path.write_text(text.format(port=free_port()))
        path.chmod(mode)
        return Config.read(path)

    return write


def test_keystone_may_be_served_to_the_network(written, capsys):
    config = written()
    assert list(faults(config)) == []
    assert main(["--config", config.source, "--check"]) == 0
    assert capsys.readouterr() == ("", "")


def test_the_section_may_be_in_a_file_of_its_own(written, tmp_path):
    written()
    api = tmp_path / "other.conf"
    api.write_text(f"[api]\nauth = keystone\nkeystone_file = {tmp_path}/api.conf\n")
    assert list(faults(Config.read(api))) == []


def test_of_several_files_only_the_one_with_the_password_must_be_closed_to_others(written, tmp_path):
    written()
    secrets, api = tmp_path / "api.conf", tmp_path / "open.conf"
    api.write_text("[api]\nauth = keystone\nworkers = 3\n")
    api.chmod(0o644)
    config = Config.read(api, secrets)
    assert (list(faults(config)), config.workers) == ([], 3)
    secrets.chmod(0o644)
    assert [(one.id, f"`{secrets}`" in one.msg) for one in faults(Config.read(api, secrets))] == [("sluice.E012", True)]


BAD = {
    "auth": (GOOD.replace("auth = keystone", "auth = kerberos"), "sluice.E009", "expected `keystone` or `token`"),
    "section": ("[api]\nauth = keystone\n", "sluice.E011", "has no `auth_type`"),
    "url": (GOOD.replace("auth_url", "#auth_url"), "sluice.E011", "has no `auth_url`"),
    "user": (GOOD.replace("username", "#username"), "sluice.E011", "has no `username`"),
    "password": (GOOD.replace("password = ", "#password = "), "sluice.E011", "has no `password`"),
    "type": (GOOD.replace("auth_type = password", "auth_type = nonsense"), "sluice.E011", "nonsense"),
    "number": (GOOD.replace("max_retries = 0", "max_retries = few"), "sluice.E011", "http_request_max_retries"),
    "prefix": (GOOD.replace("[api]", "[api]\nreseller_prefix ="), "sluice.E014", "`AUTH_`"),
    "role": (GOOD.replace("[api]", "[api]\noperator_roles = admin, the members"), "sluice.E024", "`the members`"),
    "word": (GOOD.replace("[api]", "[api]\nself_service = compresion"), "sluice.E017", "did you mean `compression`"),
}


@pytest.mark.parametrize("name", BAD)
def test_options_of_keystone_that_cannot_work_are_named_without_the_secret(written, name):
    text, number, says = BAD[name]
    config = written(text.replace("0.0.0.0", "127.0.0.1"))
    (fault,) = faults(config)
    assert fault.id == number
    assert says in fault.msg
    assert "very-secret" not in fault.msg


def test_a_file_with_a_password_that_everybody_may_read_is_refused(written):
    (fault,) = faults(written(mode=0o644))
    assert fault.id == "sluice.E012"
    assert "mode 0644" in fault.msg


def test_a_shared_cache_without_its_package_is_refused(written, monkeypatch):
    monkeypatch.setattr("sluice_controller.app.checks.find_spec", lambda name: None)
    config = written(GOOD + "memcached_servers = 127.0.0.1:11211\n")
    (fault,) = faults(config)
    assert fault.id == "sluice.E013"
    assert "`python-memcached`" in fault.msg


def test_an_invalid_line_is_not_repeated_in_errors(written, tmp_path):
    written()
    api = tmp_path / "other.conf"
    other = tmp_path / "keystone.conf"
    other.touch(mode=0o600)
    other.write_text("[keystone_authtoken]\nvery-secret\n")
    api.write_text(f"[api]\nauth = keystone\nkeystone_file = {other}\n")
    (fault,) = faults(Config.read(api))
    assert fault.id == "sluice.E010"
    assert "secret" not in fault.msg


@pytest.fixture
def door(written):
    """The middleware before an application that records its requests, with a Keystone that is unreachable."""
    from sluice_controller.identity.keystone import KeystoneMiddleware, read_conf

    got = {}

    def application(environ, start_response):
        got.clear()
        got.update(environ)
        start_response("204 No Content", [])
        return []

    door = KeystoneMiddleware(application, read_conf(written().source), lambda identity: False)

    def request(**headers):
        environ = {
            "REQUEST_METHOD": "GET",
            "PATH_INFO": "/policies",
            "SERVER_NAME": "x",
            "SERVER_PORT": "80",
            "SERVER_PROTOCOL": "HTTP/1.1",
            "wsgi.url_scheme": "http",
            "wsgi.input": io.BytesIO(),
            "wsgi.version": (1, 0),
            **headers,
        }
        statuses = []
        list(door(environ, lambda status, headers, error=None: statuses.append(status)))
        assert statuses == ["204 No Content"]
        return got

    return request


def test_identity_headers_of_a_client_are_removed(door):
    spoofed = {
        "HTTP_X_ROLES": "admin",
        "HTTP_X_USER_ID": "u",
        "HTTP_X_PROJECT_ID": "p",
        "HTTP_X_IDENTITY_STATUS": "Confirmed",
        "HTTP_X_SERVICE_ROLES": "service",
        "HTTP_SLUICE_IDENTITY": "admin",
    }
    got = door(**spoofed)
    assert IDENTITY not in got
    assert AWAY not in got
    assert got["HTTP_X_IDENTITY_STATUS"] == "Invalid"
    assert got[CHALLENGE].startswith('Keystone uri="http://127.0.0.1:')
    assert not {"HTTP_X_ROLES", "HTTP_X_USER_ID", "HTTP_X_PROJECT_ID", "HTTP_X_SERVICE_ROLES"} & got.keys()


def test_a_token_that_nobody_can_validate_is_marked_not_refused(door):
    for headers in ({"HTTP_X_AUTH_TOKEN": "t"}, {"HTTP_X_AUTH_TOKEN": "t", "HTTP_X_SERVICE_TOKEN": "s"}):
        got = door(**headers)
        assert "keystone is unreachable" in got[AWAY]
        assert IDENTITY not in got


class Answer:
    def __init__(self, *projects):
        self._projects = [{"name": name, "id": number} for name, number in projects]

    def json(self):
        return {"projects": self._projects}


@pytest.fixture
def asked():
    return []


@pytest.fixture
def clock():
    return [1000.0]


@pytest.fixture
def projects(asked, clock):
    known = {
        "acme": Answer(("acme", "a1"), ("ACME", "a2")),
        "twin": Answer(("twin", "t1"), ("twin", "t2")),
        "odd": Answer(),
    }

    class Session:
        def get(self, url, params, **_):
            from keystoneauth1.exceptions import BadRequest, ConnectFailure, Forbidden

            asked.append(params["name"])
            if params["name"] == "shy":
                raise Forbidden
            if params["name"] == "gone":
                raise ConnectFailure
            if params["name"] == "\0":
                raise BadRequest
            return known.get(params["name"], Answer())

    return ProjectAccounts(Session, "AUTH_", lambda: clock[0])


def test_a_projects_name_becomes_its_account_and_is_remembered_for_a_while(projects, asked, clock):
    assert projects["acme"] == projects["acme"] == "AUTH_a1"
    assert asked == ["acme"]
    clock[0] += REMEMBERED
    assert projects["acme"] == "AUTH_a1"
    assert asked == ["acme", "acme"]
    assert list(projects) == ["acme"]


def test_an_account_is_taken_as_it_is_and_nobody_is_asked(projects, asked):
    assert projects.get("AUTH_x", "AUTH_x") == "AUTH_x"
    assert asked == []


def test_an_invalid_project_name_is_unknown(projects, asked):
    assert "x" * 65 not in projects
    assert asked == []
    assert "\0" not in projects


def test_a_name_that_is_not_there_is_asked_for_again(projects, asked):
    assert "odd" not in projects
    assert "odd" not in projects
    assert asked == ["odd", "odd"]
    assert len(projects) == 0


def test_a_name_of_several_projects_is_refused_with_their_accounts(projects):
    with pytest.raises(CallerError, match="`AUTH_t1`, `AUTH_t2`"):
        projects["twin"]


@pytest.mark.parametrize(("name", "text"), [("shy", "role `reader` on `system`"), ("gone", "ConnectFailure")])
def test_a_keystone_that_fails_is_a_peer_error(projects, name, text):
    with pytest.raises(PeerError, match=text):
        projects[name]


def test_a_tenant_that_is_no_project_is_marked_in_the_sentence():
    from dataclasses import replace

    from sluice_controller.catalog.vocabulary import build_catalogue
    from sluice_dsl.compile import compile_text
    from sluice_dsl.diagnostics import PolicyErrors

    catalogue = replace(build_catalogue(), tenants={"acme": "AUTH_a1"}, account_prefix="AUTH_")
    (made,) = compile_text("FOR CONTAINER acme/logs DO SET noop", catalogue)
    assert (made.plan.target.name, made.plan.target.label) == ("AUTH_a1/logs", "acme/logs")
    (made,) = compile_text("FOR TENANT AUTH_other DO SET noop", catalogue)
    assert (made.plan.target.name, made.plan.target.label) == ("AUTH_other", "")
    with pytest.raises(PolicyErrors) as caught:
        compile_text("FOR OBJECT acne/logs/x DO SET noop", catalogue)
    (problem,) = caught.value.problems
    assert (problem.message.partition(",")[0], problem.near_miss) == ("there is no project `acne`", "acme")
