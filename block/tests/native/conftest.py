"""The keeper of a FUSE device, without a konnector."""

import os
import subprocess

import pytest

from sluice_block.datapath.processes import wait_until
from sluice_block.stack.build import fuse_keeper


@pytest.fixture
def keeper(tmp_path, built):
    """The socket of a keeper; its file is ``image`` in the folder of the test."""
    if os.geteuid() != 0:
        pytest.skip("mounts are root's")
    image, ready = tmp_path / "image", tmp_path / "keeper.pid"
    image.touch()
    command = [str(fuse_keeper(built)), str(image), str(tmp_path / "keeper.sock"), str(ready)]
    process = subprocess.Popen(command)
    assert wait_until(ready.exists, 10)
    yield tmp_path / "keeper.sock"
    process.kill()  # first: while it runs, umount waits for an answer
    process.wait()
    subprocess.run(["umount", image], check=True)
