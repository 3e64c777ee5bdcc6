"""The API keeps to the description that it gives of itself: schemathesis asks it everything that it describes.

Each call is asked with its examples, with what the description allows and with what it forbids, and in chains in
which one call takes what another gave.  A status, a header or a body that is not described, what is forbidden and
taken, a 5xx: each is a failure.  The seed is printed and the same each time; ``SLUICE_FUZZ=20`` makes it twenty times
as long, with another seed each time.
"""

import os
import secrets
import subprocess

import pytest

from sluice_aio.cluster.components import script

pytestmark = pytest.mark.usefixtures("unlogged")

TIMES = int(os.environ.get("SLUICE_FUZZ", "1"))
SEED = 20 if TIMES == 1 else secrets.randbelow(1 << 31)
#: Cases for each call, and seconds after which the chains end.
CASES, SECONDS = 25 * TIMES, 60 * TIMES
#: The token stays out of command lines and reports.
OPTIONS = 'headers = { "X-Auth-Token" = "${SLUICE_TOKEN}" }\n'
#: A description cannot say which texts are sentences and which names exist; and what was made without code has no
#: code yet, which looks like something that was lost.
LEFT_OUT = "positive_data_acceptance,ensure_resource_availability"
#: Calls that answer 503 without a Cinder.
WITHOUT_CINDER = "^/volumes"


def asked(lone_api, folder, *options):
    """What schemathesis says, and whether it is content."""
    (folder / "schemathesis.toml").write_text(OPTIONS)
    command = [script("schemathesis"), "--config-file", str(folder / "schemathesis.toml"), "run"]
    command += [f"{lone_api.url}/schema", "--url", lone_api.url, "--seed", str(SEED), "--no-color", "--warnings", "off"]
    command += ["--generation-database", "none", "--continue-on-failure", "--suppress-health-check", "all"]
    command += ["--exclude-path-regex", WITHOUT_CINDER]
    environment = {**os.environ, "SLUICE_TOKEN": lone_api.token}
    done = subprocess.run(
        [*command, *options], env=environment, cwd=folder, capture_output=True, text=True, errors="replace", check=False
    )
    print(f"seed {SEED}\n{done.stdout[-20000:]}{done.stderr[-4000:]}")
    assert lone_api.token not in done.stdout
    return done


@pytest.mark.probe
def test_every_call_keeps_to_its_description(lone_api, tmp_path):
    options = ("--phases", "examples,coverage,fuzzing", "--max-examples", str(CASES), "--exclude-checks", LEFT_OUT)
    done = asked(lone_api, tmp_path, *options)
    assert done.returncode == 0, f"seed {SEED}: {done.stdout[-8000:]}"
    assert "Test cases:" in done.stdout


@pytest.mark.probe
def test_calls_that_follow_each_other_keep_to_their_descriptions(lone_api, tmp_path):
    options = ("--phases", "stateful", "--max-time", str(SECONDS), "--exclude-checks", LEFT_OUT)
    done = asked(lone_api, tmp_path, *options)
    assert done.returncode == 0, f"seed {SEED}: {done.stdout[-8000:]}"
    assert "Stateful" in done.stdout


def test_what_the_description_says_is_openapi_and_complete(lone_api):
    described = lone_api.ask("GET", "/schema").json()
    assert described["openapi"].startswith("3.1")
    for path, methods in described["paths"].items():
        for method, said in methods.items():
            assert said.get("summary"), (method, path)
            assert all(one["description"] for status, one in said["responses"].items() if status >= "300"), path
            assert {"414", "431", "500"} <= set(said["responses"]), (method, path)
            if method in ("post", "put"):
                assert {"400", "411", "413", "415"} <= set(said["responses"]), (method, path)
