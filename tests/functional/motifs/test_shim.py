"""The shim of Swift keeps the contract of shims, on replicated and on erasure-coded objects."""

import os
import subprocess
from pathlib import Path

import pytest

from sluice_aio.cluster.components import swift_command

CASES = Path(__file__).parents[2] / "support" / "cluster" / "motif_shim_cases.py"


@pytest.mark.parametrize("policy", ["gold", pytest.param("ec21", marks=pytest.mark.probe)])
def test_the_shim_of_swift_keeps_the_contract(cluster, swift, policy):
    """In a process of its own, whose threads are green, as those of the daemon are."""
    assert swift.request("PUT", "shim").status in (201, 202), "which makes the account"
    command = swift_command(cluster.layout, "pytest", "-q", "-x", "-k", policy, "-p", "no:cacheprovider", str(CASES))
    environment = {**os.environ, "SLUICE_MOTIFS_CONF": str(cluster.layout.configs / "motifs.conf")}
    environment.pop("PYTEST_XDIST_WORKER", None)
    done = subprocess.run(
        command, env=environment, cwd=CASES.parents[3], capture_output=True, text=True, timeout=400, check=False
    )
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
