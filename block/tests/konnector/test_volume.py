"""Volumes on a machine: no data and no resource is lost, whichever process ends."""

import contextlib
import json
import mmap
import os
import signal
import socket
import subprocess
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest
from tests.support.block.verified_load import VerifiedLoad

from sluice_block.datapath.processes import wait_until
from sluice_block.datapath.records import ATTACHED, BROKEN, NBD, VolumeLimits
from sluice_core.errors import CallerError, Conflict, NotFound, PeerError
from sluice_volumes.messages import StackStep

pytestmark = pytest.mark.service

READAHEAD = StackStep("readahead")


def kill(process):
    os.kill(process.pid, signal.SIGKILL)
    assert process.wait(10)


def test_what_is_written_is_in_the_source_after_a_detach(machine):
    volume = machine.attach()
    with open(volume.device(), "r+b", buffering=0) as device:
        device.seek(4096)
        device.write(b"x" * 4096)
        os.fsync(device.fileno())
    machine.konnector.detach(volume.attachment.volume)
    with open(volume.attachment.connection["data"]["device_path"], "rb") as source:
        assert source.read(12288) == bytes(4096) + b"x" * 4096 + bytes(4096)
    assert machine.leftovers() == []
    with pytest.raises(NotFound, match="is not attached here"):
        machine.konnector.detach(volume.attachment.volume)


def test_the_same_attach_twice_is_one_and_another_is_refused(machine):
    volume = machine.attach()
    again, fresh = machine.konnector.attach(replace(volume.attachment, created=0.0))
    assert (again, fresh) == (volume, False)
    for field, value in (("project", "other"), ("export", NBD), ("stack", (READAHEAD,)), ("connection", {"x": 1})):
        with pytest.raises(Conflict, match=f"with another {field}"):
            machine.konnector.attach(replace(volume.attachment, **{field: value}))


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({"connection": {"driver_volume_type": "local", "data": {"device_path": "/nowhere"}}}, PeerError),
        ({"connection": {"driver_volume_type": "iscsi", "data": {}}}, CallerError),
        ({"stack": (StackStep("nothing"),)}, CallerError),
    ],
)
def test_of_an_attach_that_fails_nothing_stays(machine, fields, error):
    with pytest.raises(error):
        machine.konnector.attach(replace(machine.wanted(), **fields))
    assert machine.konnector.volumes() == []
    assert machine.leftovers() == []


def test_a_device_in_use_is_not_detached_and_the_refusal_says_by_whom(data_path, machine):
    volume = machine.attach()
    key = volume.attachment.volume
    with (
        open(volume.device(), "rb"),
        pytest.raises(Conflict, match=f"in use: opened by process {os.getpid()}"),
    ):
        machine.konnector.detach(key)
    subprocess.run(["mkfs.ext4", "-q", volume.device()], check=True)
    place = machine.folder / "mounted here"
    place.mkdir()
    subprocess.run(["mount", volume.device(), place], check=True)
    try:
        with pytest.raises(Conflict, match=f"mounted on `{place}`"):
            machine.konnector.detach(key)
        (place / "file").write_text("still here")
    finally:
        subprocess.run(["umount", place], check=True)
    assert volume.attachment.state == ATTACHED


def test_who_only_looks_at_a_device_does_not_keep_it_from_being_detached(machine):
    volume = machine.attach()
    looking = os.open(volume.device(), os.O_RDONLY)
    closing = threading.Timer(0.3, os.close, [looking])
    closing.start()
    machine.konnector.detach(volume.attachment.volume)
    closing.join()


def test_a_stack_is_replaced_under_load(data_path, machine):
    volume = machine.attach()
    with VerifiedLoad(volume.device()) as load:
        for stack in ((READAHEAD,), (), (READAHEAD,)):
            load.wait_for(200)
            machine.konnector.replace_stack(volume.attachment.volume, stack)
        load.wait_for(200)
    assert volume.attachment.stack == (READAHEAD,)


@pytest.mark.parametrize("block", [4096, 65536, 1 << 20])
def test_a_stack_that_is_killed_under_load_comes_back_and_nothing_is_lost(data_path, machine, block):
    volume = machine.attach(stack=(READAHEAD,))
    with VerifiedLoad(volume.device(), block=block, size=32 << 20) as load:
        load.wait_for(50)
        kill(volume.stack.process())
        machine.konnector.check()
        load.wait_for(50)
    assert volume.attachment.state == ATTACHED


def test_a_stack_that_does_not_start_leaves_the_old_one_serving(data_path, machine):
    volume = machine.attach()
    os.rename(volume.attachment.connection["data"]["device_path"], machine.folder / "away")
    with VerifiedLoad(volume.device()) as load:
        load.wait_for(100)
        with pytest.raises(PeerError, match="No such file"):
            machine.konnector.replace_stack(volume.attachment.volume, (READAHEAD,))
        load.wait_for(100)
    assert volume.attachment.stack == ()


def test_a_filter_that_changes_what_is_stored_cannot_be_added_or_taken_away(machine):
    volume = machine.attach()
    with pytest.raises(Conflict, match="stores its bytes as they are, and this stack would read them through `xor`"):
        machine.konnector.replace_stack(volume.attachment.volume, (StackStep("xor"),))


def test_a_cache_passes_writes_on_at_once(machine):
    volume = machine.attach(stack=(StackStep("cache", {"max_size": 16 << 20}),))
    with VerifiedLoad(volume.device(), size=32 << 20) as load:
        load.wait_for(100)
    with open(volume.device(), "r+b", buffering=0) as device:
        device.write(b"x" * 4096)
        os.fsync(device.fileno())
    with open(volume.attachment.connection["data"]["device_path"], "rb") as source:
        assert source.read(4096) == b"x" * 4096


def test_an_nbd_socket_for_qemu_needs_no_device(machine):
    volume = machine.attach(export=NBD)
    told = subprocess.run(["nbdinfo", "--size", volume.device()], capture_output=True, text=True, check=True)
    assert int(told.stdout) == 64 << 20
    assert not volume.mount.is_mounted()


@contextlib.contextmanager
def qemu_io(uri, *before):
    """A client of an NBD socket that is connected until the block ends."""
    pipe = subprocess.PIPE
    with subprocess.Popen([*before, "qemu-io", "-f", "raw", uri], stdin=pipe, stdout=pipe, text=True) as client:
        read_first_word(client)
        yield client
        client.stdin.close()


def read_first_word(client):
    client.stdin.write("read 0 512\n")
    client.stdin.flush()
    while not (line := client.stdout.readline()).startswith("512"):
        assert "read 512/512" in line or "qemu-io>" in line


@pytest.mark.parametrize("network", [(), ("unshare", "--net")])
def test_an_nbd_socket_in_use_is_not_taken_away_and_the_refusal_says_by_whom(machine, network):
    volume = machine.attach(export=NBD)
    key = volume.attachment.volume
    with qemu_io(volume.device(), *network) as client:
        with pytest.raises(Conflict, match=rf"in use: connected by process {client.pid} \(qemu-io\)"):
            machine.konnector.detach(key)
        assert volume.attachment.state == ATTACHED
        assert machine.konnector.halt()[0].endswith(f"connected by process {client.pid} (qemu-io)")
        read_first_word(client)
    machine.konnector.detach(key)
    assert machine.leftovers() == []


def test_a_konnector_that_died_while_it_showed_a_new_size_is_followed_by_one_that_shows_it(machine):
    volume = machine.attach(export=NBD)
    volume.front._daemon.execute("block-export-del", {"id": "export"})
    machine.start()
    told = subprocess.run(["nbdinfo", "--size", volume.device()], capture_output=True, text=True, check=True)
    assert int(told.stdout) == 64 << 20


def test_a_volume_of_which_a_part_is_shown_takes_the_same_requests_up_to_its_end(machine):
    whole, part = machine.attach(export=NBD), machine.attach(export=NBD, asked_size=4 << 20)
    flags = []
    for one in (whole, part):
        uri = f"nbd+unix:///?socket={one.stack.socket()}"
        told = subprocess.run(["nbdinfo", "--json", uri], capture_output=True, text=True, check=True)
        (export,) = json.loads(told.stdout)["exports"]
        flags.append({name: value for name, value in export.items() if name.startswith(("is_", "can_", "context"))})
    assert flags[0] == flags[1]
    end = (4 << 20) - 65536
    write = ["-c", f"write -P 3 {end} 64k", "-c", f"discard {end} 64k", "-c", f"write -z {end} 4k", "-c", "flush"]
    done = subprocess.run(["qemu-io", "-f", "raw", *write, part.device()], capture_output=True, text=True, check=True)
    assert "failed" not in done.stdout + done.stderr
    stored = Path(part.attachment.connection["data"]["device_path"]).read_bytes()
    assert stored.count(0) == len(stored)
    beyond = ["qemu-io", "-f", "raw", "-c", f"write {4 << 20} 512", part.device()]
    assert "failed" in subprocess.run(beyond, capture_output=True, text=True, check=False).stdout


@pytest.mark.parametrize("export", ["block", NBD])
def test_reads_of_what_was_never_written_are_limited_and_counted(machine, export):
    volume = machine.attach(export=export, limits=VolumeLimits(max_iops=50.0))
    engine = ["nbd", f"--uri={volume.device()}"] if export == NBD else ["libaio", f"--filename={volume.device()}"]
    job = ["--name=load", "--rw=randread", "--bs=4k", "--iodepth=16", "--size=32m", "--number_ios=60", "--direct=1"]
    subprocess.run(["fio", *job, f"--ioengine={engine[0]}", engine[1]], check=True, capture_output=True)
    counted = volume.counters()
    assert counted.reads >= 60
    assert counted.waited > 0.1


def test_limits_hold_at_once_and_after_a_restart_and_requests_are_counted(data_path, machine):
    volume = machine.attach(limits=VolumeLimits(max_iops=50.0))
    key = volume.attachment.volume
    with VerifiedLoad(volume.device(), threads=4) as load:
        load.wait_for(20)
        assert volume.counters().waited > 0.1
        machine.konnector.set_limits(key, VolumeLimits())
        load.wait_for(500)
        kill(volume.stack.process())
        machine.konnector.check()
        load.wait_for(100)
    counted = volume.counters()
    assert counted.reads + counted.writes >= load.operations
    assert counted.written_bytes == counted.writes * load.block
    assert counted.under_way == 0
    assert 0 < counted.write_latency.quantile(0.5) <= counted.write_latency.quantile(0.99)
    with pytest.raises(CallerError, match="limit read_bytes is `-1`"):
        machine.konnector.set_limits(key, VolumeLimits(read_bw=-1.0))
    machine.konnector.set_limits(key, VolumeLimits(max_bw=3e6))
    machine.start()
    assert machine.konnector.volume(key).attachment.limits == VolumeLimits(max_bw=3e6)


@pytest.fixture
def server(machine):
    """Starts an NBD server over a file, repeatedly at the same address."""
    source = machine.folder / "served.img"
    with open(source, "wb") as file:
        file.truncate(64 << 20)
    running = []

    def start(*options):
        command = ["nbdkit", "--foreground", "--pidfile", str(machine.folder / "served.pid"), *options, "file", source]
        (machine.folder / "served.pid").unlink(missing_ok=True)
        (machine.folder / "served.sock").unlink(missing_ok=True)
        running.append(subprocess.Popen(command))
        assert wait_until((machine.folder / "served.pid").exists, 10)
        return running[-1]

    yield start
    for volume in machine.konnector.volumes():  # while their server runs
        machine.konnector.detach(volume.attachment.volume)
    for one in running:
        one.kill()
        one.wait()


def write_directly(device, size):
    """Write without the page cache, so that the writer gets the error."""
    buffer = mmap.mmap(-1, 1 << 20)
    buffer[:] = b"x" * len(buffer)
    descriptor = os.open(device, os.O_WRONLY | os.O_DIRECT)
    try:
        for offset in range(0, size, len(buffer)):
            os.pwritev(descriptor, [buffer], offset)
    finally:
        os.close(descriptor)


def nbd(**data):
    return {"driver_volume_type": "nbd", "data": data}


def test_a_server_that_dies_and_comes_back_is_waited_for(data_path, machine, server):
    address = str(machine.folder / "served.sock")
    first = server("--unix", address)
    volume = machine.attach(connection=nbd(uri=f"nbd+unix:///?socket={address}"))
    with VerifiedLoad(volume.device(), size=32 << 20) as load:
        load.wait_for(100)
        first.kill()
        first.wait()
        server("--unix", address)
        load.wait_for(100)
    assert volume.attachment.state == ATTACHED


@pytest.mark.usefixtures("old_kernel")
def test_the_client_of_a_server_that_dies_is_started_again(machine, server):
    address = str(machine.folder / "served.sock")
    server("--unix", address)
    volume = machine.attach(connection=nbd(uri=f"nbd+unix:///?socket={address}"))
    kill(volume.source.process())
    machine.konnector.check()
    with VerifiedLoad(volume.device(), size=32 << 20) as load:
        load.wait_for(100)


def test_over_tcp_the_key_of_the_attachment_is_needed(machine, server):
    key = "ab" * 32
    keys = machine.folder / "keys"
    keys.write_text(f"data1:{key}\n")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    server("--ipaddr", "127.0.0.1", "--port", str(port), "--tls", "require", f"--tls-psk={keys}")
    uri = f"nbds://data1@127.0.0.1:{port}/"
    for refused, error in (
        (nbd(uri=uri), CallerError),
        (nbd(uri=uri.replace("nbds", "nbd"), auth_username="data1", auth_password=key), CallerError),
        (nbd(uri=uri, auth_username="data1", auth_password="cd" * 32), PeerError),
    ):
        with pytest.raises(error) as caught:
            machine.konnector.attach(replace(machine.wanted(), connection=refused))
        assert "cd" * 32 not in str(caught.value)
    volume = machine.attach(connection=nbd(uri=uri, auth_username="data1", auth_password=key))
    commands = [path.read_bytes() for path in Path("/proc").glob("[0-9]*/cmdline")]
    assert not any(key.encode() in one for one in commands)
    with VerifiedLoad(volume.device(), size=32 << 20) as load:
        load.wait_for(100)


def test_a_limit_does_not_hold_up_a_replacement(machine):
    volume = machine.attach(limits=VolumeLimits(max_bw=500_000.0))
    with VerifiedLoad(volume.device(), block=1 << 20, size=32 << 20) as load:
        load.wait_for(1)
        before = time.monotonic()
        machine.konnector.replace_stack(volume.attachment.volume, (READAHEAD,))
        assert time.monotonic() - before < 10  # fifteen requests would wait for 30 s
        machine.konnector.set_limits(volume.attachment.volume, VolumeLimits())
        load.wait_for(20)


def test_a_full_back_end_is_told_to_the_writer_and_to_nobody_else(machine):
    place = machine.folder / "small"
    place.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8m", "tmpfs", place], check=True)
    try:
        with open(place / "image", "wb") as source:
            source.truncate(64 << 20)
        connection = {"driver_volume_type": "local", "data": {"device_path": str(place / "image")}}
        full, other = machine.attach(connection=connection), machine.attach()
        with VerifiedLoad(other.device()) as load:
            with pytest.raises(OSError, match="No space left"):
                write_directly(full.device(), 32 << 20)
            load.wait_for(100)
        assert full.counters().errors_enospc > 0
        assert full.attachment.state == ATTACHED
        machine.konnector.detach(full.attachment.volume)
    finally:
        subprocess.run(["umount", place], check=True)


def test_a_volume_that_was_taken_away_is_served_no_more_and_forgotten(machine):
    volume = machine.attach(attachment="a1")
    key = volume.attachment.volume
    with pytest.raises(NotFound, match="not attached here by attachment `a2`"):
        machine.konnector.revoke(key, "a2")
    assert volume.attachment.state == ATTACHED
    assert machine.konnector.revoke(key, "a1")
    assert machine.leftovers() == []


@pytest.mark.parametrize("restart", [False, True])
def test_who_holds_a_volume_that_was_taken_away_gets_errors_and_it_goes_with_them(data_path, machine, restart):
    volume = machine.attach(attachment="a1")
    key, source = volume.attachment.volume, volume.attachment.connection["data"]["device_path"]
    with open(volume.device(), "r+b", buffering=0) as device:
        assert not machine.konnector.revoke(key, "a1")
        device.write(b"x" * 4096)
        with pytest.raises(OSError, match="Input/output error"):
            os.fsync(device.fileno())
        if restart:
            machine.start()
        machine.konnector.check()
        (after,) = machine.konnector.volumes()
        assert (after.attachment.state, after.attachment.revoked) == (BROKEN, True)
        assert "`a1` was ended by force" in after.attachment.fault
    machine.konnector.check()
    assert machine.konnector.volumes() == []
    assert not any(Path(source).read_bytes()[:4096])


def test_a_volume_that_was_taken_away_is_not_built_anew_after_a_reboot(machine):
    volume = machine.attach(attachment="a1")
    volume.files.write(replace(volume.attachment, state=BROKEN, revoked=True))
    volume.halt()
    machine.start()
    assert machine.konnector.volumes() == []
    assert machine.leftovers() == []


@pytest.mark.probe
def test_a_volume_whose_server_is_gone_for_good_is_taken_away(data_path, machine, server):
    address = str(machine.folder / "served.sock")
    first = server("--unix", address)
    volume = machine.attach(connection=nbd(uri=f"nbd+unix:///?socket={address}"), attachment="a1")
    first.kill()
    first.wait()
    machine.konnector.check()
    assert machine.konnector.revoke(volume.attachment.volume, "a1")
    assert machine.leftovers() == []
