"""The API matches its own description: schemathesis requests all that it describes.

Each call is requested with its examples, with input that the description allows and that it forbids, and in chains in
which one call takes values that another returned.  A status, a header or a body that is not described, accepted
forbidden input, or a 5xx is a failure.  The seed is printed and the same each time; ``SLUICE_FUZZ=20`` makes it twenty
times as long, with another seed each time.
"""

import pytest
from tests.support.controller.described_calls import ABOUT_MOTIFS, VOLUME_PATHS
from tests.support.controller.schema_check import TIMES, check_schema

pytestmark = pytest.mark.usefixtures("unlogged")

#: Cases for each call, and seconds after which the chains end.
CASES, SECONDS = 25 * TIMES, 60 * TIMES
#: Calls that answer 503 without a Cinder, which ``block/test_api_schema.py`` has, or without a motif daemon.
ANSWERED_HERE = ("--exclude-path-regex", f"{VOLUME_PATHS}|^{ABOUT_MOTIFS}")


@pytest.mark.probe
def test_every_call_keeps_to_its_description(lone_api, tmp_path):
    options = ("--phases", "examples,coverage,fuzzing", "--max-examples", str(CASES))
    assert "Test cases:" in check_schema(lone_api, tmp_path, *ANSWERED_HERE, *options)


@pytest.mark.probe
def test_calls_that_follow_each_other_keep_to_their_descriptions(lone_api, tmp_path):
    options = ("--phases", "stateful", "--max-time", str(SECONDS))
    assert "Stateful" in check_schema(lone_api, tmp_path, *ANSWERED_HERE, *options)


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
