"""schemathesis against an API: each call is requested as its description allows, and must answer as described."""

import json
import os
import secrets
import subprocess

from sluice_aio.cluster.components import script

TIMES = int(os.environ.get("SLUICE_FUZZ", "1"))
SEED = 20 if TIMES == 1 else secrets.randbelow(1 << 31)
#: The token stays out of command lines and reports.
OPTIONS = 'headers = { "X-Auth-Token" = "${SLUICE_TOKEN}" }\n'
#: A description cannot express which texts are sentences and which names exist; and an object created without code has
#: no code yet, which looks like a lost object.
LEFT_OUT = "positive_data_acceptance,ensure_resource_availability"


def check_schema(api, folder, *options, **names):
    """Run schemathesis, and return its output.

    :param options: of its command ``run``: which calls, which phases, how many
    :param names: part of a path → its value in all requests
    :raises AssertionError: when a response is not as described
    """
    said = [f'"path.{name}" = {json.dumps(value)}' for name, value in names.items()]
    (folder / "schemathesis.toml").write_text("\n".join((OPTIONS, "[parameters]", *said, "")))
    command = [script("schemathesis"), "--config-file", str(folder / "schemathesis.toml"), "run"]
    command += [f"{api.url}/schema", "--url", api.url, "--seed", str(SEED), "--no-color", "--warnings", "off"]
    command += ["--generation-database", "none", "--continue-on-failure", "--suppress-health-check", "all"]
    command += ["--exclude-checks", LEFT_OUT]
    environment = {**os.environ, "SLUICE_TOKEN": api.token}
    done = subprocess.run(
        [*command, *options], env=environment, cwd=folder, capture_output=True, text=True, errors="replace", check=False
    )
    print(f"seed {SEED}\n{done.stdout[-20000:]}{done.stderr[-4000:]}")
    assert api.token not in done.stdout
    assert done.returncode == 0, f"seed {SEED}: {done.stdout[-8000:]}"
    return done.stdout
