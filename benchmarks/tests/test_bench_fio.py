"""fio with the options of the benchmarks."""

import pytest
from benchmarks.harness.fio import device_target, run_fio

from sluice_core.errors import PeerError


def test_a_request_that_fails_is_an_error_which_fio_names(tmp_path):
    with pytest.raises(PeerError, match=r"fio failed: .*directory"):
        run_fio(device_target(str(tmp_path), 1 << 20), "read", "4k", 1)
