"""``openstack sluice …`` in a process of its own; its start takes seconds, so there are few tests.

The options are those of docs/cli/index.md.
"""

import json

from docs.generated.commands import entry_points

from sluice_client.testing import StubController, catalogue

SENTENCE = "FOR TENANT AUTH_osc DO SET noop"


def test_without_keystone_an_endpoint_and_the_admin_token_do(openstack, api, client):
    start = ["--os-auth-type", "none", "--os-endpoint", api.url, "--os-sluice-token-file", str(api.token)]
    done = openstack(*start, "sluice", "policy", "create", SENTENCE, "-f", "json")
    (made,) = json.loads(done.stdout)
    assert made["Policy"] == SENTENCE
    assert client.policy(made["ID"])["policy"] == SENTENCE


def test_a_known_token_comes_from_the_session(openstack, api, client):
    made = client.create_policy(SENTENCE)
    known = {"OS_AUTH_TYPE": "admin_token", "OS_ENDPOINT": api.url, "OS_TOKEN": api.token.read_text().strip()}
    done = openstack("sluice", "policy", "list", "-f", "value", "-c", "ID", "--debug", env=known)
    assert done.stdout == f"{made['id']}\n"


def test_the_controller_is_found_in_the_service_catalogue(openstack, stub):
    stub.enqueue(200, {"terms": [{"term": "DOCS", "patterns": ["*.pdf"]}]})
    with StubController() as keystone:
        keystone.enqueue(201, catalogue(stub.url), X_Subject_Token="a-fine-token")
        known = {
            "OS_AUTH_TYPE": "v3password",
            "OS_AUTH_URL": f"{keystone.url}/v3",
            "OS_USERNAME": "me",
            "OS_PASSWORD": "geheim",
            "OS_PROJECT_NAME": "acme",
            "OS_USER_DOMAIN_ID": "default",
            "OS_PROJECT_DOMAIN_ID": "default",
        }
        done = openstack("sluice", "term", "list", "-f", "json", env=known)
    assert json.loads(done.stdout) == [{"Term": "DOCS", "Patterns": ["*.pdf"]}]
    assert (stub.requests[0].path, stub.requests[0].headers["X-Auth-Token"]) == ("/registry/terms", "a-fine-token")
    assert "a-fine-token" not in done.stdout + done.stderr


def test_a_refusal_is_one_line_with_the_reason_and_the_request(openstack, api):
    start = ["--os-auth-type", "none", "--os-sluice-endpoint", api.url]
    known = {"SLUICE_TOKEN_FILE": str(api.token)}
    done = openstack(*start, "sluice", "policy", "show", "nope", status=1, env=known)
    (line,) = done.stderr.splitlines()
    assert line.startswith("there is no policy `nope` (HTTP 404) (Request-ID: req-")


def test_without_a_token_the_controller_says_what_is_missing(openstack, api):
    done = openstack("--os-auth-type", "none", "--os-endpoint", api.url, "sluice", "node", "list", status=1)
    assert "(HTTP 401)" in done.stderr
    assert done.stdout == ""


def test_every_command_is_known_to_openstack(openstack):
    listed = openstack("sluice", "--help").stdout
    names = [line.partition(" = ")[0] for line in entry_points()["openstack.sluice.v1"]]
    assert all(f"  {name.replace('_', ' ')}\n" in listed for name in names if not name.startswith("_"))


def test_a_token_file_that_is_missing_is_named_and_nothing_is_asked(openstack, api, tmp_path):
    path = str(tmp_path / "none")
    start = ["--os-auth-type", "none", "--os-endpoint", api.url, "--os-sluice-token-file", path]
    done = openstack(*start, "sluice", "health", "show", status=1)
    assert done.stderr == f"the token file `{path}` cannot be read: No such file or directory\n"
