"""The process of an uploaded filter, when bubblewrap does not report its pid."""

import os
import subprocess

import pytest

from sluice_block.uploaded import sandbox
from sluice_core.errors import PeerError

pytestmark = pytest.mark.unit


def test_bubblewrap_without_a_told_pid_is_not_reaped_before_it_is_killed(tmp_path):
    outer = subprocess.Popen(["true"])
    outer.returncode = 0  # it is reaped by its pid, not by this object

    with pytest.raises(PeerError, match="the filter does not serve"):
        sandbox._checked(0, outer.pid, tmp_path / "listening", tmp_path / "log")

    assert os.waitpid(outer.pid, 0)[0] == outer.pid
