"""Ended processes of a volume are restarted, or it is reported as broken, also after a crash and a reboot."""

import os
import shutil
import subprocess
import threading
import time
from dataclasses import replace

import pytest
from tests.support.block.verified_load import VerifiedLoad

from sluice_block.datapath import loop_devices
from sluice_block.datapath.fuse_device import FuseDevice
from sluice_block.datapath.processes import wait_until
from sluice_block.datapath.records import ATTACHED, ATTACHING, BROKEN, DETACHING
from sluice_block.datapath.stack_server import StackServer
from sluice_block.konnector import konnector
from sluice_block.konnector import volume as konnector_volume
from sluice_block.konnector.volume import AttachedVolume
from sluice_core.errors import Conflict, PeerError
from sluice_volumes.messages import StackStep

pytestmark = pytest.mark.service

READAHEAD = StackStep("readahead")


def kill(process):
    os.kill(process.pid, 9)
    assert process.wait(10)


def take_device(machine, other):
    """A volume, and its device, which shows ``other`` now; a concurrent test may take it first."""
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


@pytest.fixture(params=["keeper", "front", "mount"])
def front(request):
    """Returns one of the processes that export a volume as a block device."""
    if request.param == "keeper":
        return lambda volume: volume.export.process()
    request.getfixturevalue("old_kernel")
    return lambda volume: getattr(volume, request.param).process()


def test_a_front_that_dies_is_built_anew_when_nobody_uses_it(machine, front):
    volume = machine.attach()
    kill(front(volume))
    machine.konnector.check()
    assert volume.attachment.state == ATTACHED
    with VerifiedLoad(volume.device()) as load:
        load.wait_for(100)


def test_a_front_that_dies_under_its_users_is_broken_until_they_are_gone(machine, front):
    volume = machine.attach()
    with open(volume.device(), "r+b", buffering=0) as device:
        kill(front(volume))
        machine.konnector.check()
        assert volume.attachment.state == BROKEN
        device.write(b"x" * 4096)
        with pytest.raises(OSError, match="Input/output error"):
            os.fsync(device.fileno())
        with pytest.raises(Conflict, match="is broken here, detach it first"):
            machine.konnector.attach(volume.attachment)
    machine.konnector.detach(volume.attachment.volume)


def test_another_konnector_takes_volumes_over_while_they_are_used(data_path, machine):
    volume = machine.attach()
    assert volume.to_data()["data_path"] == data_path
    with VerifiedLoad(volume.device()) as load:
        load.wait_for(100)
        before = volume.export.processes(), volume.stack.process(), volume.device()
        machine.start()
        (after,) = machine.konnector.volumes()
        assert (after.export.processes(), after.stack.process(), after.device()) == before
        machine.konnector.replace_stack(volume.attachment.volume, (READAHEAD,))
        load.wait_for(100)


def test_a_volume_of_a_konnector_that_knew_fronts_alone_keeps_its_front(machine, monkeypatch):
    with monkeypatch.context() as before:
        before.setattr(konnector_volume, "is_supported", lambda built: False)
        volume = machine.attach()
    with VerifiedLoad(volume.device()) as load:
        load.wait_for(100)
        machine.start()
        (after,) = machine.konnector.volumes()
        assert (after.to_data()["data_path"], after.attachment.state) == ("nbdfuse", ATTACHED)
        machine.konnector.replace_stack(volume.attachment.volume, (READAHEAD,))
        load.wait_for(100)
    machine.konnector.detach(volume.attachment.volume)
    assert machine.attach().to_data()["data_path"] == "fuse"


def test_after_a_reboot_what_was_attached_is_built_anew(data_path, machine):
    volume = machine.attach()
    with open(volume.device(), "r+b", buffering=0) as device:
        device.write(b"kept" * 1024)
        os.fsync(device.fileno())
    volume.export.end()
    kill(volume.stack.process())
    shutil.rmtree(volume.folder)
    machine.start()
    (after,) = machine.konnector.volumes()
    with open(after.device(), "rb") as device:
        assert device.read(4096) == b"kept" * 1024


@pytest.mark.parametrize("state", [ATTACHING, DETACHING])
def test_what_a_crash_left_half_done_is_finished(data_path, machine, state):
    volume = machine.attach()
    volume.files.write(replace(volume.attachment, state=state))
    if state == ATTACHING:
        loop_devices.remove(volume.device())
        if data_path == "nbdfuse":
            volume.mount.end()
    machine.start()
    assert [one.attachment.state for one in machine.konnector.volumes()] == ([ATTACHED] if state == ATTACHING else [])


@pytest.fixture
def held(machine, monkeypatch):
    """An attach that fails when its device exists already, which a process has open by then: volume and holder."""
    opened = []

    def fail(front):
        (device,) = (one.device() for one in machine.konnector.volumes())
        opened.append(os.open(device, os.O_RDONLY))
        raise PeerError("the front does not answer")

    wanted = machine.wanted()
    with monkeypatch.context() as patch:
        patch.setattr(FuseDevice, "size", fail)
        with pytest.raises(PeerError, match="the front does not answer"):
            machine.konnector.attach(wanted)
    return wanted, opened[0]


@pytest.mark.parametrize("restart", [False, True])
def test_an_attach_that_cannot_be_undone_is_kept_and_said_and_undone_later(machine, held, restart, monkeypatch):
    wanted, holder = held
    if restart:
        machine.start()
    (volume,) = machine.konnector.volumes()
    assert volume.attachment.state == DETACHING
    said = volume.to_data()["fault"]
    assert said.startswith("its attach failed and is undone: the front does not answer; what is left of it does not")
    assert f"opened by process {os.getpid()}" in said
    assert next(iter(volume.files.read_all())).fault == said
    with pytest.raises(Conflict, match=f"opened by process {os.getpid()}"):
        machine.konnector.detach(wanted.volume)
    with pytest.raises(Conflict, match="is detaching here, detach it first"):
        machine.konnector.attach(wanted)
    os.close(holder)
    monkeypatch.setattr(konnector, "_AGAIN", 0.0)
    machine.konnector.check()
    assert machine.konnector.volumes() == []
    assert machine.leftovers() == []


def test_it_is_tried_now_and_then_to_end_what_is_held(machine, held, monkeypatch):
    _, holder = held
    tried = []
    monkeypatch.setattr(AttachedVolume, "retry_detach", lambda self: tried.append(self))
    machine.konnector.check()
    assert tried == []
    monkeypatch.undo()
    os.close(holder)


def test_what_a_record_that_cannot_be_read_stands_for_is_not_taken_for_detached(machine):
    volume = machine.attach()
    before, key = volume.attachment, volume.attachment.volume
    path = machine.folder / "state" / f"{key}.volume"
    kept = path.read_bytes()
    path.write_bytes(kept[:100])
    machine.start()
    for call in (machine.konnector.volume, machine.konnector.detach, lambda _: machine.konnector.attach(before)):
        with pytest.raises(PeerError, match=f"`{path}` cannot be read"):
            call(key)
    path.write_bytes(kept)
    machine.start()
    assert machine.konnector.volume(key).attachment.state == ATTACHED


@pytest.mark.parametrize("ended", [False, True])
def test_a_replacement_that_a_crash_cut_leaves_one_stack_that_serves(machine, monkeypatch, ended):
    volume = machine.attach()
    before = volume.stack.process()

    def crash(stack):
        if ended:
            kill(before)
        raise SystemExit

    with VerifiedLoad(volume.device()) as load:
        load.wait_for(100)
        with monkeypatch.context() as cut:
            cut.setattr(StackServer, "_drop", lambda self, name: None)  # no process is left to clean up
            with pytest.raises(SystemExit):
                volume.stack.replace(volume.attachment, crash)
        machine.start()
        (after,) = machine.konnector.volumes()
        assert (after.stack.process() == before) is not ended
        assert [path.name for path in after.folder.glob("stack*.sock")] == [after.stack.socket().name]
        load.wait_for(100)


@pytest.mark.usefixtures("old_kernel")
@pytest.mark.parametrize("told", [False, True])
def test_a_replacement_that_a_crash_cut_leaves_the_stack_that_the_front_uses(machine, monkeypatch, told):
    volume = machine.attach()

    def crash(stack):
        if told:
            volume.front.swap(stack)
        raise SystemExit

    monkeypatch.setattr(StackServer, "_drop", lambda self, name: None)  # no process is left to clean up
    with pytest.raises(SystemExit):
        volume.stack.replace(volume.attachment, crash)
    monkeypatch.undo()
    machine.start()
    (after,) = machine.konnector.volumes()
    assert after.stack.socket() == after.front.stack()
    assert [path.name for path in after.folder.glob("stack*.sock")] == [after.stack.socket().name]
    with VerifiedLoad(after.device()) as load:
        load.wait_for(100)


def test_a_write_of_a_stack_that_was_killed_ends_at_its_server_before_it_is_repeated(machine):
    socket, image = machine.folder / "slow.sock", machine.folder / "slow.img"
    image.write_bytes(bytes(16 << 20))
    options = {  # nbdkit's own delays end with the connection, these do not
        "thread_model": "echo parallel",
        "get_size": f"echo {16 << 20}",
        "pread": f"dd if={image} skip=$4 count=$3 iflag=skip_bytes,count_bytes status=none",
        "can_write": "exit 0",
        "pwrite": f"sleep 1; dd of={image} seek=$4 oflag=seek_bytes conv=notrunc status=none",
    }
    command = ["nbdkit", "-f", "-U", str(socket), "eval", *(f"{key}={value}" for key, value in options.items())]
    server = subprocess.Popen(command)
    try:
        assert wait_until(socket.exists, 10)
        connection = {"driver_volume_type": "nbd", "data": {"uri": f"nbd+unix:///?socket={socket}"}}
        volume = machine.attach(connection=connection)
        with open(volume.device(), "r+b", buffering=0) as device:
            device.write(b"x" * 4096)
            began = time.monotonic()
            synchronising = threading.Thread(target=os.fsync, args=(device.fileno(),))
            synchronising.start()
            assert wait_until(lambda: volume.counters().under_way > 0, 10)
            kill(volume.stack.process())
            machine.konnector.check()
            synchronising.join()
        assert time.monotonic() - began > 1.9  # the rest of the first, and then the second
        machine.konnector.detach(volume.attachment.volume)
        assert image.read_bytes()[:4096] == b"x" * 4096
    finally:
        server.kill()
        server.wait()
