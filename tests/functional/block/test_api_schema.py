"""Calls about volumes match their descriptions, with a real Cinder: ``../test_api_schema.py``."""

from urllib.parse import quote

import pytest
from tests.support.controller.described_calls import VOLUME_PATHS
from tests.support.controller.schema_check import TIMES, check_schema

pytestmark = [pytest.mark.probe, pytest.mark.usefixtures("unlogged")]

#: Cases for each call, and seconds after which the chains end.
CASES, SECONDS = 10 * TIMES, 20 * TIMES
ABOUT_VOLUMES = ("--include-path-regex", VOLUME_PATHS)
EXAMPLES = ("--phases", "examples,coverage")
FUZZING = ("--phases", "examples,coverage,fuzzing", "--max-examples", str(CASES))


def test_every_call_about_volumes_keeps_to_its_description(volumes_api, tmp_path):
    assert "Test cases:" in check_schema(volumes_api, tmp_path, *ABOUT_VOLUMES, *EXAMPLES)


def test_every_call_about_what_exists_keeps_to_its_description(volumes_api, tmp_path):
    made = volumes_api.ask("POST", "/volumes?wait=30", {"size": 1}).json()
    assert made["state"] == "done", made
    assert volumes_api.ask("POST", "/volumes/tiers", {"name": "tried", "iops": 1}).status == 201
    pool = volumes_api.ask("GET", "/volumes/pools").json()["pools"][0]["name"]
    names = {"volume": made["volume"], "operation": made["id"], "tier": "tried", "pool": quote(pool)}
    # a deleted object would be missing for the other calls
    only = (*ABOUT_VOLUMES, "--exclude-method", "DELETE", *FUZZING)
    assert "Test cases:" in check_schema(volumes_api, tmp_path, *only, **names)


def test_calls_about_volumes_that_follow_each_other_keep_to_their_descriptions(volumes_api, tmp_path):
    options = ("--phases", "stateful", "--max-time", str(SECONDS))
    assert "Stateful" in check_schema(volumes_api, tmp_path, *ABOUT_VOLUMES, *options)
