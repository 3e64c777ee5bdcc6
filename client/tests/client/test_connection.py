"""The settings of address and identity: options, the environment, then a cloud."""

import sys

import pytest
import yaml

from sluice_client.cli import main
from sluice_client.connection import Settings
from sluice_client.errors import ClientError
from sluice_client.testing import StubController, catalogue

# openstacksdk warns so about its own configuration
pytestmark = pytest.mark.filterwarnings("ignore:Support for InfluxDB")

HERE, THERE = "http://127.0.0.1:1", "http://127.0.0.1:2"
ENVIRON = {"SLUICE_URL": THERE, "SLUICE_TOKEN_FILE": "there", "OS_CLOUD": "acme"}
#: Options (URL, file of the token, cloud), environment → the effective ones.
CASES = {
    "nothing": ((None, None, None), {}, (None, None, None)),
    "the environment": ((None, None, None), ENVIRON, (THERE, "there", None)),
    "options before the environment": ((HERE, "here", None), ENVIRON, (HERE, "here", None)),
    "an option for each": ((HERE, None, None), ENVIRON, (HERE, "there", None)),
    "a cloud of the environment last": ((None, None, None), {"OS_CLOUD": "acme"}, (None, None, "acme")),
    "what openrc says is a cloud": ((None, None, None), {"OS_AUTH_URL": "x"}, (None, None, "")),
    "a cloud at another address": (
        (None, None, None),
        {"OS_CLOUD": "acme", "SLUICE_URL": THERE},
        (THERE, None, "acme"),
    ),
    "an option for the cloud before the environment": ((None, None, "acme"), ENVIRON, (None, None, "acme")),
    "an option for the cloud at an address": ((HERE, None, "acme"), ENVIRON, (HERE, None, "acme")),
    "no token, whatever the environment says": ((None, "", None), ENVIRON, (THERE, "", None)),
    "what is empty counts for nothing": ((None, None, None), {"SLUICE_URL": "", "OS_CLOUD": ""}, (None, None, None)),
}


@pytest.mark.parametrize("name", CASES)
def test_an_option_counts_before_the_environment_and_that_before_a_cloud(name):
    options, environ, expected = CASES[name]
    assert Settings.read(*options, environ) == Settings(*expected)


def test_a_token_and_a_cloud_contradict_each_other():
    with pytest.raises(ClientError, match="expected one of both"):
        Settings.read(None, "token", "acme", {})


@pytest.fixture
def keystone():
    with StubController() as server:
        yield server


@pytest.fixture
def run(monkeypatch, capsys, tmp_path, keystone):
    """Runs ``sluice`` beside a clouds.yaml with the cloud ``acme``, whose Keystone is a script."""
    login = {"auth_url": f"{keystone.url}/v3", "username": "me", "password": "geheim", "project_name": "acme"}
    domains = {"user_domain_id": "default", "project_domain_id": "default"}
    cloud = {"auth_type": "v3password", "auth": {**login, **domains}}
    (tmp_path / "clouds.yaml").write_text(yaml.safe_dump({"clouds": {"acme": cloud}}))
    monkeypatch.setenv("OS_CLIENT_CONFIG_FILE", str(tmp_path / "clouds.yaml"))

    def go(*words):
        status = main(words)
        said = capsys.readouterr()
        assert "a-fine-token" not in said.out + said.err
        return status, said.out, said.err

    return go


def test_a_cloud_logs_in_and_names_the_controller(run, stub, keystone):
    keystone.enqueue(201, catalogue(stub.url), X_Subject_Token="a-fine-token")
    stub.enqueue(200, {"terms": []})
    assert run("--os-cloud", "acme", "term", "list", "--json") == (0, "[]\n", "")
    assert keystone.requests[0].body["auth"]["identity"]["password"]["user"]["name"] == "me"
    assert (stub.requests[0].path, stub.requests[0].headers["X-Auth-Token"]) == ("/registry/terms", "a-fine-token")


def test_the_token_of_a_cloud_is_not_sent_to_an_address_of_the_environment(run, stub, keystone, nobody, monkeypatch):
    monkeypatch.setenv("SLUICE_URL", nobody)
    keystone.enqueue(201, catalogue(stub.url), X_Subject_Token="a-fine-token")
    stub.enqueue(200, {"terms": []})
    assert run("--os-cloud", "acme", "term", "list")[0] == 0


def test_a_cloud_of_the_environment_is_asked_where_there_is_no_token(run, stub, keystone, monkeypatch):
    monkeypatch.setenv("OS_CLOUD", "acme")
    keystone.enqueue(201, catalogue(stub.url), X_Subject_Token="a-fine-token")
    stub.enqueue(200, {"terms": []}).enqueue(200, {"terms": []})
    assert run("term", "list")[0] == 0
    assert run("--url", stub.url, "--token-file", "", "term", "list")[0] == 0
    assert [one.headers["X-Auth-Token"] for one in stub.requests] == ["a-fine-token", ""]


@pytest.mark.parametrize(
    ("cloud", "hint"), [("acne", "did you mean `acme`"), ("globex", "expected `acme`")], ids=["near", "far"]
)
def test_a_cloud_that_is_not_there_is_answered_with_what_there_is(run, monkeypatch, cloud, hint):
    said = (1, "", f"sluice: the cloud `{cloud}` is not in clouds.yaml, {hint}\n")
    assert run("--os-cloud", cloud, "term", "list") == said
    monkeypatch.setenv("OS_CLOUD", cloud)
    assert run("term", "list") == said


def test_without_clouds_yaml_it_is_said_where_it_is_looked_for(run, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "clouds.yaml").unlink()
    status, out, err = run("--os-cloud", "acme", "term", "list")
    assert (status, out) == (1, "")
    assert err.startswith("sluice: the cloud `acme` is not in clouds.yaml, which is read from this folder, `~/.config")


def test_a_refusal_of_keystone_is_a_line(run, keystone):
    keystone.enqueue(401, {"error": {"code": 401, "title": "Unauthorized", "message": "no such user"}})
    status, _, err = run("--os-cloud", "acme", "term", "list")
    assert (status, len(err.splitlines())) == (1, 1)
    assert "keystone refuses: no such user" in err


def test_without_openstacksdk_it_is_said_what_is_missing(run, monkeypatch):
    monkeypatch.setitem(sys.modules, "openstack.config", None)
    status, _, err = run("--os-cloud", "acme", "term", "list")
    assert (status, "pip install 'openstack-sluice[openstack]'" in err) == (1, True)
