"""What of a volume ends comes back, or is said to be broken, after a crash and a reboot, too."""

import os
import shutil
import subprocess
from dataclasses import replace

import pytest
from tests.support.block.verified_load import VerifiedLoad

from sluice_block.konnector.datapath import loop_devices
from sluice_block.konnector.datapath.stack_server import StackServer
from sluice_block.konnector.records import ATTACHED, ATTACHING, BROKEN, DETACHING
from sluice_core.errors import Conflict
from sluice_core.volumes.messages import StackStep

pytestmark = pytest.mark.service

READAHEAD = StackStep("readahead")


def kill(process):
    os.kill(process.pid, 9)
    assert process.wait(10)


def take_device(machine, other):
    """A volume, and its device, which shows ``other`` now; a test beside this one may be faster to take it."""
    for _ in range(5):
        volume = machine.attach()
        device = volume.device()
        subprocess.run(["losetup", "--detach", device], check=True)
        if subprocess.run(["losetup", device, other], check=False).returncode == 0:
            return volume, device
        machine.konnector.check()
        machine.konnector.detach(volume.attachment.volume)
    raise AssertionError("others took each device")


def test_a_device_that_somebody_took_away_is_made_anew(machine, tmp_path):
    other = tmp_path / "other"
    other.write_bytes(bytes(1 << 20))
    volume, device = take_device(machine, other)
    try:
        machine.konnector.check()
        assert volume.device() not in ("", device)
        with VerifiedLoad(volume.device()) as load:
            load.wait_for(100)
        machine.konnector.detach(volume.attachment.volume)
        assert loop_devices.find(other) == device
    finally:
        subprocess.run(["losetup", "--detach", device], check=True)


@pytest.mark.parametrize("which", ["front", "mount"])
def test_a_front_that_dies_is_built_anew_when_nobody_uses_it(machine, which):
    volume = machine.attach()
    kill(getattr(volume, which).process())
    machine.konnector.check()
    assert volume.attachment.state == ATTACHED
    with VerifiedLoad(volume.device()) as load:
        load.wait_for(100)


@pytest.mark.parametrize("which", ["front", "mount"])
def test_a_front_that_dies_under_its_users_is_broken_until_they_are_gone(machine, which):
    volume = machine.attach()
    with open(volume.device(), "r+b", buffering=0):
        kill(getattr(volume, which).process())
        machine.konnector.check()
        assert volume.attachment.state == BROKEN
        with pytest.raises(Conflict, match="is broken here, detach it first"):
            machine.konnector.attach(volume.attachment)
    machine.konnector.detach(volume.attachment.volume)


def test_another_konnector_takes_volumes_over_while_they_are_used(machine):
    volume = machine.attach()
    with VerifiedLoad(volume.device()) as load:
        load.wait_for(100)
        before = volume.front.process(), volume.stack.process(), volume.device()
        machine.start()
        (after,) = machine.konnector.volumes()
        assert (after.front.process(), after.stack.process(), after.device()) == before
        machine.konnector.replace_stack(volume.attachment.volume, (READAHEAD,))
        load.wait_for(100)


def test_after_a_reboot_what_was_attached_is_built_anew(machine):
    volume = machine.attach()
    with open(volume.device(), "r+b", buffering=0) as device:
        device.write(b"kept" * 1024)
        os.fsync(device.fileno())
    loop_devices.remove(volume.device())
    volume.mount.end()
    kill(volume.front.process())
    kill(volume.stack.process())
    shutil.rmtree(volume.folder)
    machine.start()
    (after,) = machine.konnector.volumes()
    with open(after.device(), "rb") as device:
        assert device.read(4096) == b"kept" * 1024


@pytest.mark.parametrize("state", [ATTACHING, DETACHING])
def test_what_a_crash_left_half_done_is_finished(machine, state):
    volume = machine.attach()
    volume.files.write(replace(volume.attachment, state=state))
    if state == ATTACHING:
        loop_devices.remove(volume.device())
        volume.mount.end()
    machine.start()
    assert [one.attachment.state for one in machine.konnector.volumes()] == ([ATTACHED] if state == ATTACHING else [])


@pytest.mark.parametrize("told", [False, True])
def test_a_replacement_that_a_crash_cut_leaves_the_stack_that_the_front_uses(machine, monkeypatch, told):
    volume = machine.attach()

    def crash(stack):
        if told:
            volume.front.swap(stack)
        raise SystemExit

    monkeypatch.setattr(StackServer, "_drop", lambda self, name: None)  # nobody is there to tidy up
    with pytest.raises(SystemExit):
        volume.stack.replace(volume.attachment, crash)
    monkeypatch.undo()
    machine.start()
    (after,) = machine.konnector.volumes()
    assert after.stack.socket() == after.front.stack()
    assert [path.name for path in after.folder.glob("stack*.sock")] == [after.stack.socket().name]
    with VerifiedLoad(after.device()) as load:
        load.wait_for(100)
