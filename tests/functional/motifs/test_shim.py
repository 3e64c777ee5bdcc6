"""The shim of Swift keeps the contract of shims, with batches and without, and on erasure-coded objects."""

from pathlib import Path

import pytest
from tests.support.cluster.green_cases import run_cases

CASES = Path(__file__).parents[2] / "support" / "cluster" / "motif_shim_cases.py"


@pytest.mark.parametrize(
    "policy", ["batched", *(pytest.param(one, marks=pytest.mark.probe) for one in ("gold", "ec21"))]
)
def test_the_shim_of_swift_keeps_the_contract(cluster, swift, policy):
    assert swift.request("PUT", "shim").status in (201, 202), "which makes the account"
    run_cases(cluster, CASES, "-k", policy)
