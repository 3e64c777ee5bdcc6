"""Loop devices have the settings that a volume needs, whatever was set before."""

from pathlib import Path

import pytest

from sluice_block.datapath import loop_devices, processes

pytestmark = pytest.mark.service


def test_a_device_has_no_scheduler_although_its_number_had_one(tmp_path, monkeypatch):
    """The kernel keeps a scheduler with its number, which concurrent tests may take: so the device is not removed."""
    file = tmp_path / "volume"
    file.write_bytes(bytes(1 << 20))
    device = loop_devices.make(file)
    scheduler = Path("/sys/block", Path(device).name, "queue", "scheduler")
    try:
        scheduler.write_text("bfq", encoding="ascii")
        assert "[bfq]" in scheduler.read_text(encoding="ascii")
        monkeypatch.setattr(processes, "run", lambda *_: f"{device}\n")
        assert loop_devices.make(file) == device
        assert "[none]" in scheduler.read_text(encoding="ascii")
    finally:
        monkeypatch.undo()
        scheduler.write_text("none", encoding="ascii")
        loop_devices.remove(device)
