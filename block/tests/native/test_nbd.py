"""The plugin ``nbd``: for every behaviour of its server, requests are answered, in an order that is not visible."""

import os
import signal
import subprocess
from contextlib import contextmanager

import pytest
from tests.support.block.nbd import connected, serve

from sluice_block.datapath.processes import wait_until
from sluice_block.stack.build import nbd_plugin
from sluice_core.errors import PeerError

pytestmark = pytest.mark.service

MIB = 1 << 20


@contextmanager
def plugin(folder, built, keeper):
    """A client of an nbdkit with the plugin, whose server is at ``folder/server.sock``."""
    options = (f"nbd-socket={folder}/server.sock", f"nbd-keeper={keeper}")
    with serve(folder, built, [], str(nbd_plugin(built)), *options) as server, connected(server) as client:
        yield client


@contextmanager
def source(folder, built, *arguments):
    with serve(folder, built, [], *arguments, name="server") as server:
        yield server


def test_what_the_server_can_is_what_the_plugin_can(tmp_path, built, keeper):
    with source(tmp_path, built, "memory", "8M"), plugin(tmp_path, built, keeper) as client:
        assert all(client.ask("can", what) for what in ("flush", "fua", "trim", "zero"))
        client.write(b"x" * MIB, 0)
        client.ask("fua", (b"y" * 512).hex(), MIB)
        client.ask("zero", 4096, 0)
        client.ask("trim", 4096, 8192)
        client.ask("flush")
        assert client.read(8192, 0) == bytes(4096) + b"x" * 4096
        assert client.read(1024, MIB) == b"y" * 512 + bytes(512)


def test_a_server_that_is_killed_and_comes_back_is_asked_again(tmp_path, built, keeper):
    image = tmp_path / "source"
    image.write_bytes(bytes(8 * MIB))
    with source(tmp_path, built, "file", str(image)) as first, plugin(tmp_path, built, keeper) as client:
        client.ask("begin", "write", 8, MIB)
        first.process.send_signal(signal.SIGKILL)
        first.process.wait()
        with source(tmp_path, built, "file", str(image)):
            assert client.ask("finish") == [0] * 8
            client.write(b"x" * 512, 0)
            assert client.read(512, 0) == b"x" * 512


def test_errors_that_the_server_answers_pass_on(tmp_path, built, keeper):
    failing = ("--filter=error", "memory", "8M", "error-pwrite=ENOSPC", "error-pwrite-rate=100%")
    with source(tmp_path, built, *failing), plugin(tmp_path, built, keeper) as client:
        with pytest.raises(PeerError, match="No space left"):
            client.write(bytes(512), 0)
        assert client.read(512, 0) == bytes(512)


def test_errors_that_the_server_answers_reach_the_user_of_a_block_device(tmp_path, built, keeper):
    """The threads of the filter ``fuse`` are not nbdkit's, which keeps errors of requests only for its own."""
    image, ready = tmp_path / "image", tmp_path / "open"
    failing = ("--filter=error", "memory", "8M", "error-pwrite=ENOSPC", "error-pwrite-rate=100%")
    options = (f"nbd-socket={tmp_path}/server.sock", f"nbd-keeper={keeper}")
    options += (f"fuse-keeper={keeper}", f"fuse-ready={ready}")
    with source(tmp_path, built, *failing), serve(tmp_path, built, ["fuse"], str(nbd_plugin(built)), *options):
        assert wait_until(ready.exists, 10)
        descriptor = os.open(image, os.O_RDWR)
        try:
            with pytest.raises(OSError, match="No space left"):
                os.pwrite(descriptor, bytes(4096), 0)
            assert os.pread(descriptor, 4096, 0) == bytes(4096)
        finally:
            os.close(descriptor)


def test_a_server_that_promises_nothing_of_several_connections_has_one(tmp_path, built, keeper):
    alone = ("--filter=multi-conn", "memory", "8M", "multi-conn-mode=disable")
    with source(tmp_path, built, *alone) as server, plugin(tmp_path, built, keeper) as client:
        client.ask("begin", "write", 16, 4096)
        assert client.ask("finish") == [0] * 16
        links = [os.readlink(one.path) for one in os.scandir(f"/proc/{server.process.pid}/fd") if one.is_symlink()]
        assert sum(one.startswith("socket:") for one in links) <= 3  # it listens, too, and the handshake may overlap


def test_a_server_that_is_not_there_is_said_in_the_log(tmp_path, built, keeper):
    options = (f"nbd-socket={tmp_path}/server.sock", f"nbd-keeper={keeper}")
    with serve(tmp_path, built, [], str(nbd_plugin(built)), *options) as server:
        assert subprocess.run(["nbdinfo", "--size", server.uri], capture_output=True, check=False).returncode
    assert "server.sock` cannot be used: No such file or directory" in (tmp_path / "volume.log").read_text()
