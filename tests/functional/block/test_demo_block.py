"""Volumes for a new user: ``make demo-block`` on a cluster of its own."""

import os
import subprocess
import tempfile
from pathlib import Path

import pytest

from sluice_aio.cluster.components import script

pytestmark = pytest.mark.probe


def test_the_demo_of_volumes_holds_and_leaves_nothing():
    if os.geteuid() != 0:
        pytest.skip("loop devices and mounts are root's")
    with tempfile.TemporaryDirectory(prefix="sluice-") as folder:
        command = [script("sluice-aio"), "--folder", str(Path(folder, "d")), "--ports", "free", "demo-block"]
        ended = subprocess.run(command, capture_output=True, text=True, check=False, timeout=240)
        assert ended.returncode == 0, ended.stdout + ended.stderr
        lines = ended.stdout.splitlines()
        assert lines[-1].startswith("everything held, ")
        assert sum(line.startswith("ok ") for line in lines) == 7
        assert folder not in subprocess.run(["losetup", "--list"], capture_output=True, text=True, check=True).stdout
        assert folder not in Path("/proc/mounts").read_text()
