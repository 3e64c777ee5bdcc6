"""HEADs and contractions in batches have the results of single ones, also with silent or disagreeing servers."""

from pathlib import Path

from tests.support.cluster.green_cases import run_cases

CASES = Path(__file__).parents[2] / "support" / "cluster" / "object_batch_cases.py"


def test_batches_tell_and_do_what_the_proxy_does(cluster, swift):
    assert swift.request("PUT", "batches").status in (201, 202), "which makes the account"
    run_cases(cluster, CASES)


def test_a_client_cannot_send_batches(swift):
    assert swift.request("BATCH", "batches/o", b"[]").status == 405
