"""Encrypted volumes: no plain data is stored, and a source that may hold data is not formatted."""

import os
import signal
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from tests.support.block.verified_load import VerifiedLoad

from sluice_block.datapath.records import ATTACHED
from sluice_block.konnector import volume_changes
from sluice_core.errors import CallerError, Conflict, PeerError
from sluice_volumes.messages import StackStep

pytestmark = pytest.mark.service

MIB = 1 << 20
LUKS, XOR, READAHEAD = StackStep("luks"), StackStep("xor", {"key": 7}), StackStep("readahead")
SECRET = "0f" * 32
PLAIN = b"plain text that nobody may find " * 128


def probes(*stacks):
    return [pytest.param(one, marks=pytest.mark.probe) for one in stacks]


def stored(volume):
    return Path(volume.attachment.connection["data"]["device_path"])


def encrypted(machine, **fields):
    return machine.attach(**{"stack": (LUKS,), "secret": SECRET, "fresh": True, **fields})


def write(volume):
    with open(volume.device(), "r+b", buffering=0) as device:
        device.seek(MIB)
        device.write(PLAIN)
        os.fsync(device.fileno())


def read(volume):
    with open(volume.device(), "rb", buffering=0) as device:
        device.seek(MIB)
        return device.read(len(PLAIN))


@pytest.mark.parametrize("stack", [(LUKS,), *probes((READAHEAD, LUKS), (LUKS, XOR), (XOR, LUKS))])
def test_what_is_written_is_stored_encrypted_and_comes_back(machine, stack):
    volume = encrypted(machine, stack=stack)
    write(volume)
    machine.konnector.detach(volume.attachment.volume)
    dump = stored(volume).read_bytes()
    for plain in (PLAIN[:16], bytes(one ^ 7 for one in PLAIN[:16])):
        assert plain not in dump
    header = bytes(one ^ 7 for one in dump[:6]) if stack[-1] == XOR else dump[:6]
    assert header == b"LUKS\xba\xbe"
    again, _ = machine.konnector.attach(replace(volume.attachment, state="attaching", fresh=False))
    assert read(again) == PLAIN


def test_the_header_is_luks_and_no_part_of_the_size_that_is_shown(machine):
    volume = encrypted(machine)
    shown = subprocess.run(
        ["qemu-img", "info", "--force-share", str(stored(volume))], check=True, capture_output=True, text=True
    ).stdout
    assert "file format: luks" in shown
    assert "cipher mode: xts" in shown
    size = int(subprocess.run(["blockdev", "--getsize64", volume.device()], check=True, capture_output=True).stdout)
    assert volume.attachment.size == size == stored(volume).stat().st_size - 4040 * 512


@pytest.mark.parametrize("stack", [(XOR, LUKS), *probes((LUKS,), (LUKS, XOR))])
def test_as_much_is_shown_as_is_asked_for_and_its_first_and_last_bytes_are_kept(machine, stack):
    size = 60 * MIB
    volume = encrypted(machine, stack=stack, asked_size=size)
    assert volume.attachment.size == size
    with open(volume.device(), "r+b", buffering=0) as device:
        assert device.seek(0, os.SEEK_END) == size
        for offset in (0, size - len(PLAIN)):
            os.pwrite(device.fileno(), PLAIN, offset)
        os.fsync(device.fileno())
    volume_changes.replace_stack(volume, (READAHEAD, *stack))
    machine.konnector.detach(volume.attachment.volume)
    again, _ = machine.konnector.attach(replace(volume.attachment, state="attaching", fresh=False))
    with open(again.device(), "rb", buffering=0) as device:
        assert device.seek(0, os.SEEK_END) == size
        assert [os.pread(device.fileno(), len(PLAIN), offset) for offset in (0, size - len(PLAIN))] == [PLAIN, PLAIN]


@pytest.mark.probe
def test_more_than_there_is_beside_the_header_is_not_shown(machine):
    with pytest.raises(PeerError):
        encrypted(machine, asked_size=64 * MIB)


def test_another_secret_is_refused_and_writes_nothing(machine):
    volume = encrypted(machine)
    write(volume)
    with pytest.raises(Conflict, match="attached here with another secret"):
        machine.konnector.attach(replace(volume.attachment, secret="other"))
    machine.konnector.detach(volume.attachment.volume)
    before = stored(volume).read_bytes()
    for fresh in (True, False):
        wanted = replace(volume.attachment, state="attaching", secret="other", fresh=fresh)
        with pytest.raises(CallerError, match="`secret` does not open the LUKS header of the volume"):
            machine.konnector.attach(wanted)
    assert stored(volume).read_bytes() == before
    assert machine.leftovers() == []


@pytest.mark.parametrize(("fresh", "data"), [(False, b""), (True, b"x")])
def test_a_volume_that_was_used_or_holds_data_gets_no_header(machine, fresh, data):
    wanted = replace(machine.wanted(), stack=(LUKS,), secret=SECRET, fresh=fresh)
    source = Path(wanted.connection["data"]["device_path"])
    with open(source, "r+b") as file:
        file.seek(4 * MIB - 1)
        file.write(data)
    before = source.read_bytes()
    with pytest.raises(Conflict, match="the volume has no LUKS header"):
        machine.konnector.attach(wanted)
    assert source.read_bytes() == before
    assert machine.leftovers() == []


def test_a_volume_whose_beginning_cannot_be_read_gets_no_header(machine):
    wanted = replace(machine.wanted(), stack=(LUKS,), secret=SECRET, fresh=True)
    source = Path(wanted.connection["data"]["device_path"])
    source.rename(source.with_suffix(".away"))
    with pytest.raises(PeerError, match="No such file"):
        machine.konnector.attach(wanted)


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"stack": (LUKS,)}, "`secret` is missing, which a filter of the stack needs"),
        ({"secret": SECRET}, "no filter of the stack needs a `secret`"),
        ({"stack": (LUKS, LUKS), "secret": SECRET}, "stands twice in the stack"),
    ],
)
def test_a_secret_comes_with_a_filter_that_needs_it(machine, fields, reason):
    with pytest.raises(CallerError, match=reason):
        machine.konnector.attach(replace(machine.wanted(), **fields))


def test_the_secret_is_in_no_command_line_and_in_no_file_but_its_own(machine):
    volume = encrypted(machine)
    commands = [path.read_bytes() for path in Path("/proc").glob("[0-9]*/cmdline")]
    assert not any(SECRET.encode() in one for one in commands)
    files = [path for path in machine.folder.rglob("*") if path.is_file() and not path.match("mount/*")]
    holding = [path for path in files if SECRET.encode() in path.read_bytes()]
    assert holding == [machine.folder / "state" / f"{volume.attachment.volume}.volume"]
    assert holding[0].stat().st_mode & 0o777 == 0o600
    assert SECRET not in str(volume.to_data())
    assert SECRET not in repr(volume.attachment)


def test_an_encrypted_volume_comes_back_after_a_crash_and_after_a_replacement(machine):
    volume = encrypted(machine)
    with VerifiedLoad(volume.device(), size=32 * MIB) as load:
        load.wait_for(100)
        machine.konnector.replace_stack(volume.attachment.volume, (READAHEAD, LUKS))
        load.wait_for(100)
        stack = volume.stack.process()
        os.kill(stack.pid, signal.SIGKILL)
        assert stack.wait(10)
        machine.konnector.check()
        load.wait_for(100)
    assert volume.attachment.state == ATTACHED
