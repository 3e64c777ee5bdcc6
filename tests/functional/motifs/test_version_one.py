"""Objects that version 1 contracted without a copy are read, and contracted again with one."""

from pathlib import Path

from tests.support.cluster.green_cases import run_cases

CASES = Path(__file__).parents[2] / "support" / "cluster" / "motif_version_one_cases.py"


def test_a_store_of_version_1_keeps_all_its_bytes(cluster, swift):
    assert swift.request("PUT", "version-one").status in (201, 202), "which makes the account"
    run_cases(cluster, CASES)
