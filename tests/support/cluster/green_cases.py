"""Runs tests in a process of its own, whose threads are green, as those of Swift's daemons are."""

import os
import subprocess

from sluice_aio.cluster.components import swift_command


def run_cases(cluster, path, *options):
    """Run the tests of a file with the configuration of the cluster's motif daemon; fail with their output."""
    command = swift_command(cluster.layout, "pytest", "-q", "-x", *options, "-p", "no:cacheprovider", str(path))
    environment = {**os.environ, "SLUICE_MOTIFS_CONF": str(cluster.layout.configs / "motifs.conf")}
    environment.pop("PYTEST_XDIST_WORKER", None)
    done = subprocess.run(
        command, env=environment, cwd=path.parents[3], capture_output=True, text=True, timeout=400, check=False
    )
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
