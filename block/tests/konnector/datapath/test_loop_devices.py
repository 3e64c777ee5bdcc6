"""Loop devices are as a volume needs them, whoever had their numbers before."""

import subprocess
from pathlib import Path

import pytest

from sluice_block.konnector.datapath import loop_devices

pytestmark = pytest.mark.service


def scheduler(device):
    return Path("/sys/block", Path(device).name, "queue", "scheduler")


def given_again(file):
    """A device whose number was another's, who left it with `bfq`; a test beside this one may be faster to take it."""
    for _ in range(5):
        before = loop_devices.make(file)
        scheduler(before).write_text("bfq", encoding="ascii")
        subprocess.run(["losetup", "--detach", before], check=True)
        device = loop_devices.make(file)
        if device == before:
            return device
        loop_devices.remove(device)
        scheduler(before).write_text("none", encoding="ascii")
    raise AssertionError("others took each number")


def test_a_device_has_no_scheduler_although_its_number_had_one(tmp_path):
    file = tmp_path / "volume"
    file.write_bytes(bytes(1 << 20))
    device = given_again(file)
    try:
        assert "[none]" in scheduler(device).read_text(encoding="ascii")
    finally:
        scheduler(device).write_text("none", encoding="ascii")
        loop_devices.remove(device)
