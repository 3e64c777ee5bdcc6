"""A volume behind an uploaded filter: the stored data, and the effect of the filter's faults."""

import os
import signal
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from tests.support.block.verified_load import VerifiedLoad

from sluice_block.datapath.processes import read_record, wait_until
from sluice_block.datapath.records import ATTACHED, BROKEN, NBD
from sluice_block.konnector import volume_changes
from sluice_block.konnector.cli import Supervisor
from sluice_block.uploaded.sandbox import Confinement
from sluice_block.uploaded.stage import PendingRequests, StageRecord
from sluice_core.errors import CallerError, Conflict
from sluice_volumes.messages import StackStep

pytestmark = pytest.mark.service

ROT = StackStep("rot", {"rot-by": 7})
BAD = StackStep("bad")
BY = {"name": "rot-by", "type": "int", "default": 13, "minimum": 1, "maximum": 255}


def write(device, data, offset=0):
    """Write and flush, without the page cache's delay."""
    with open(device, "r+b", buffering=0) as file:
        file.seek(offset)
        file.write(data)
        os.fsync(file.fileno())


def stored(volume, count, offset=0):
    with open(volume.attachment.connection["data"]["device_path"], "rb") as file:
        file.seek(offset)
        return file.read(count)


def kill(process):
    os.kill(process.pid, signal.SIGKILL)
    assert process.wait(10)


@pytest.fixture
def rot(machine, uploadable):
    """A volume with an uploaded filter, and one of Sluice's filters before that."""
    machine.upload("rot", uploadable("rot"), parameters=[BY])
    return machine.attach(stack=(StackStep("xor", {"key": 1}), ROT))


@pytest.fixture
def bad(machine, uploadable):
    """Attaches a volume behind the filter that misbehaves; writes that begin with BAD! trigger it."""
    machine.bounds = Confinement(memory=64 << 20, seconds=5.0, uid=500000)
    machine.start()
    supervisor = Supervisor(machine.konnector)
    supervisor.start()

    def attach(what):
        machine.upload("bad", uploadable("bad", f"-DDO={what}"), reverse=False)
        return machine.attach(stack=(BAD,))

    yield attach
    supervisor.stop()


def test_writes_pass_the_installed_filters_and_then_the_uploaded_one(rot):
    data = bytes(range(256)) * 16
    write(rot.device(), data)
    assert stored(rot, len(data)) == bytes((byte ^ 1) + 7 & 0xFF for byte in data)
    with VerifiedLoad(rot.device()) as load:
        load.wait_for(200)


def test_what_was_stored_is_read_back_after_the_next_attach(machine, rot):
    write(rot.device(), b"kept" * 1024)
    wanted = rot.attachment
    machine.konnector.detach(wanted.volume)
    stack = (*wanted.stack, *wanted.uploaded)
    again = machine.attach(connection=wanted.connection, stack=stack)
    with open(again.device(), "rb") as device:
        assert device.read(4096) == b"kept" * 1024


def test_its_process_has_a_user_of_its_own_and_no_rights(rot):
    lines = Path(f"/proc/{rot.source.process().pid}/status").read_text().splitlines()
    status = dict(line.split(":\t", 1) for line in lines)
    user = str(500000 + int(rot.attachment.volume[-4:], 16))
    assert status["Uid"].split() == [user] * 4
    assert status["Groups"].strip() == ""
    assert (int(status["CapEff"], 16), status["NoNewPrivs"], status["Seccomp"]) == (0, "1", "2")


def test_a_filter_reaches_no_file_no_network_and_no_program(bad):
    volume = bad("LEAVE")
    write(volume.device(), b"BAD!".ljust(4096))
    assert int.from_bytes(stored(volume, 4), "little") == 0b1_1111_1111


def test_a_filter_that_is_killed_once_is_started_again_and_nobody_gets_an_error(machine, rot):
    with VerifiedLoad(rot.device()) as load:
        load.wait_for(100)
        kill(rot.source.process())
        machine.konnector.check()
        load.wait_for(200)
    assert rot.attachment.state == ATTACHED


@pytest.mark.parametrize(
    ("what", "reason"),
    [
        ("CRASH", "(the filter does not serve: )?it was ended by SIGSEGV"),  # while it runs, or as it is started again
        pytest.param("HANG", r"it has not answered a request for \d+ s", marks=pytest.mark.probe),
        ("EAT", r"it uses \d+ bytes of memory, expected 67108864 at most"),
    ],
)
def test_a_filter_that_fails_twice_breaks_its_volume_alone_and_is_refused(machine, bad, uploadable, what, reason):
    volume, other = bad(what), machine.attach()
    with VerifiedLoad(other.device()) as load, ThreadPoolExecutor(1) as pool:
        writing = pool.submit(write, volume.device(), b"BAD!".ljust(4096))
        assert wait_until(lambda: volume.attachment.state == BROKEN, 60)
        with pytest.raises(OSError, match="Input/output error"):
            writing.result(20)
        load.wait_for(100)
    assert other.attachment.state == ATTACHED
    assert "revision 1 of filter `bad` failed" in volume.attachment.fault
    machine.konnector.detach(volume.attachment.volume)
    with pytest.raises(Conflict, match=f"revision 1 of filter `bad` is refused on this node: {reason}"):
        machine.attach(stack=(BAD,))
    machine.upload("bad", uploadable("rot"))
    assert machine.attach(stack=(BAD,)).attachment.state == ATTACHED


@pytest.fixture
def stopped_server(machine):
    """An NBD server over a file, and a function that stops and continues it."""
    source, address, ready = (machine.folder / f"served.{name}" for name in ("img", "sock", "pid"))
    with open(source, "wb") as file:
        file.truncate(64 << 20)
    process = subprocess.Popen(["nbdkit", "--foreground", "--pidfile", ready, "--unix", address, "file", source])
    assert wait_until(ready.exists, 10)
    connection = {"driver_volume_type": "nbd", "data": {"uri": f"nbd+unix:///?socket={address}"}}
    yield connection, process.send_signal
    process.send_signal(signal.SIGCONT)
    for volume in machine.konnector.volumes():  # while their server runs
        machine.konnector.detach(volume.attachment.volume)
    process.kill()
    process.wait()


def test_a_filter_is_not_to_blame_for_a_source_that_does_not_answer(machine, uploadable, stopped_server):
    connection, signal_server = stopped_server
    machine.bounds = Confinement(seconds=1.0, uid=500000)
    machine.start()
    machine.upload("rot", uploadable("rot"))
    volume = machine.attach(stack=(StackStep("rot"),), connection=connection)
    before = volume.source.process()
    supervisor = Supervisor(machine.konnector)
    supervisor.start()
    with VerifiedLoad(volume.device(), size=32 << 20) as load:
        load.wait_for(100)
        signal_server(signal.SIGSTOP)
        page = PendingRequests(volume.folder / "above.page", machine.built)
        assert wait_until(lambda: page.oldest() > 4, 30)
        signal_server(signal.SIGCONT)
        load.wait_for(100)
    supervisor.stop()
    assert volume.attachment.state == ATTACHED
    assert volume.source.process() == before


def test_another_konnector_takes_the_filter_over_while_it_is_used(machine, rot):
    with VerifiedLoad(rot.device()) as load:
        load.wait_for(100)
        before = rot.source.process()
        machine.start()
        (after,) = machine.konnector.volumes()
        assert after.source.process() == before
        load.wait_for(100)


def test_a_volume_that_grows_shows_it_through_the_filter_whose_revision_stays(machine, rot, uploadable):
    machine.konnector.detach(rot.attachment.volume)
    volume = machine.attach(stack=(ROT,), export=NBD)
    machine.upload("rot", uploadable("rot", "-DEXTRA=1"), parameters=[BY])
    os.truncate(volume.attachment.connection["data"]["device_path"], 96 << 20)
    assert volume_changes.resize(volume)
    assert volume.attachment.size == 96 << 20
    assert read_record(volume.folder / "filter.process", StageRecord).revision == 1


@pytest.mark.probe
def test_what_is_encrypted_passes_the_filter_and_is_read_back(machine, uploadable):
    machine.upload("rot", uploadable("rot"), parameters=[BY])
    volume = machine.attach(stack=(StackStep("luks"), ROT), secret="k" * 32, fresh=True)
    write(volume.device(), b"kept" * 1024)
    assert stored(volume, 4) == bytes(byte + 7 & 0xFF for byte in b"LUKS")
    wanted = volume.attachment
    machine.konnector.detach(wanted.volume)
    again = machine.attach(connection=wanted.connection, stack=(StackStep("luks"), ROT), secret="k" * 32)
    with open(again.device(), "rb") as device:
        assert device.read(4096) == b"kept" * 1024


def test_a_stack_may_change_in_front_of_the_filter_and_not_without_it(machine, rot):
    key, xor = rot.attachment.volume, StackStep("xor", {"key": 1})
    with VerifiedLoad(rot.device()) as load:
        load.wait_for(100)
        machine.konnector.replace_stack(key, (StackStep("nop"), xor, ROT))
        load.wait_for(100)
    with pytest.raises(Conflict, match="keeps the uploaded filter that it was attached with"):
        machine.konnector.replace_stack(key, (xor,))


@pytest.mark.parametrize(
    ("stack", "error"),
    [
        ((ROT, StackStep("xor")), "uploaded filter `rot` stands before `xor`, expected it last"),
        ((StackStep("rott"),), "no filter `rott` for volumes, did you mean `rot`"),
        ((StackStep("rot", {"rot-by": 300}),), "`rot-by` of filter `rot` is `300`, expected int from 1 to 255"),
        ((StackStep("rot", {"by": 3}),), "filter `rot` has no parameter `by`"),
    ],
)
def test_a_stack_that_cannot_be_is_refused_and_nothing_stays(machine, uploadable, stack, error):
    machine.upload("rot", uploadable("rot"), parameters=[BY])
    with pytest.raises(CallerError, match=error):
        machine.attach(stack=stack)
    assert machine.konnector.volumes() == []


def test_a_filter_that_passed_no_trial_here_is_not_used(machine, uploadable):
    machine.upload("rot", uploadable("rot"))
    for mark in (machine.folder / "code").glob("*.proven-*"):
        mark.unlink()
    with pytest.raises(Conflict, match="no revision of filter `rot` has passed its trial on this node"):
        machine.attach(stack=(StackStep("rot"),))
