"""Exports without Cinder: their processes, records and keys."""

import os
import secrets
import signal
import stat
import subprocess
import uuid
from pathlib import Path

import pytest

from sluice_block.cinder_nbd.exports import SHARED, SINGLE, ExportInUse, Exports

pytestmark = pytest.mark.service

PORTS = range(61000, 65536)


def run(command):
    try:
        subprocess.run(command, check=True, capture_output=True, text=True)
    except subprocess.CalledProcessError as error:
        raise OSError(error.stderr) from error


@pytest.fixture
def image(tmp_path):
    path = tmp_path / "image"
    path.write_bytes(bytes(4096))
    return path


@pytest.fixture
def exports(tmp_path):
    # the path of a socket may have 107 bytes
    made = Exports(tmp_path / "e", "127.0.0.1", PORTS, run)
    made.prepare()
    yield made
    for volume_id in made.known():
        made.close(volume_id)


@pytest.fixture
def volume():
    return str(uuid.uuid4())


def pid_of(tmp_path, volume):
    return int((tmp_path / "e" / f"{volume}.pid").read_text())


def open_for(exports, volume, image, consumer="a", readonly=False, tls=False):
    return exports.open(volume, "volume-1", image, consumer, readonly, tls)


def test_the_folder_is_its_owners_alone(exports, tmp_path):
    assert stat.S_IMODE((tmp_path / "e").stat().st_mode) == 0o700


def test_an_export_is_one_consumers_until_it_is_closed(exports, volume, image, tmp_path):
    first = open_for(exports, volume, image)
    pid = pid_of(tmp_path, volume)
    assert open_for(exports, volume, image) == first
    with pytest.raises(ExportInUse, match="`volume-1` is exported for another connector"):
        open_for(exports, volume, image, "b")
    assert pid_of(tmp_path, volume) == pid
    os.kill(pid, signal.SIGKILL)
    with pytest.raises(ExportInUse):
        open_for(exports, volume, image, "b")
    exports.close(volume)
    exports.close(volume)
    assert not list((tmp_path / "e").iterdir())
    assert open_for(exports, volume, image, "b").consumer == "b"


def test_a_dead_export_comes_back_with_its_port_and_key(exports, volume, image, tmp_path):
    made = open_for(exports, volume, image, tls=True)
    os.kill(pid_of(tmp_path, volume), signal.SIGKILL)
    while exports.alive(volume):
        pass
    exports.restore(volume)
    assert exports.alive(volume)
    assert exports.find(volume) == made
    assert exports.uri(made) == f"nbds://{volume}@127.0.0.1:{made.port}/volume-1"


@pytest.mark.parametrize("threads", [SHARED, SINGLE])
def test_an_export_keeps_its_threads_when_it_comes_back(exports, volume, image, tmp_path, threads):
    exports.open(volume, "volume-1", image, "a", readonly=False, tls=False, threads=threads)
    os.kill(pid_of(tmp_path, volume), signal.SIGKILL)
    while exports.alive(volume):
        pass
    exports.restore(volume)
    command = Path(f"/proc/{pid_of(tmp_path, volume)}/cmdline").read_bytes().split(b"\0")
    assert f"--threads={threads}".encode() in command


def test_who_lost_an_export_does_not_reach_the_next_one(exports, volume, image):
    before = exports.uri(open_for(exports, volume, image))
    exports.close(volume)
    after = exports.uri(open_for(exports, volume, image))
    assert subprocess.run(["nbdinfo", "--size", before], capture_output=True, check=False).returncode
    assert subprocess.run(["nbdinfo", "--size", after], check=True, capture_output=True, text=True).stdout == "4096\n"


def test_a_paused_export_is_resumed_by_a_restart_and_ended_while_paused(exports, volume, image, tmp_path):
    open_for(exports, volume, image)
    uri = exports.uri(exports.find(volume))
    with exports.paused(volume):
        exports.restore(volume)  # as a driver does at its start after a crash
        assert subprocess.run(["nbdinfo", "--size", uri], check=True, capture_output=True, text=True).stdout == "4096\n"
        os.kill(pid_of(tmp_path, volume), signal.SIGSTOP)
        exports.close(volume)
    assert not exports.alive(volume)


def test_a_pid_file_that_names_a_stranger_harms_nobody(exports, volume, tmp_path):
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE) as stranger:
        (tmp_path / "e" / f"{volume}.pid").write_text(f"{stranger.pid}\n")
        assert exports.known() == [volume]
        exports.close(volume)
        assert exports.known() == []
        assert stranger.poll() is None
        stranger.communicate()


def test_a_file_that_cannot_be_exported_leaves_no_record(exports, volume, tmp_path):
    with pytest.raises(OSError, match="absent"):
        open_for(exports, volume, tmp_path / "absent")
    assert exports.known() == []


def test_a_record_shows_no_key(exports, volume, image, tmp_path):
    made = open_for(exports, volume, image, tls=True)
    assert len(made.key) == 64
    assert made.key not in repr(made)
    assert made.key not in (tmp_path / "e" / f"{volume}.json").read_text()


def test_a_folder_with_too_long_a_path_is_refused(tmp_path):
    with pytest.raises(ValueError, match="too long for a unix socket"):
        Exports(tmp_path / secrets.token_hex(50), "127.0.0.1", PORTS, run).prepare()
