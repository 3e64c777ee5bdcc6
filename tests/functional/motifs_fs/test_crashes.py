"""A mount whose process is killed at any moment leaves every file whole or contracted."""

import contextlib
import os
import random
import socket
import threading
import time

from sluice_motifs_fs.storage.attributes import STORED, StoredState

KILLS = 8
ITEMS = 12


def content(number):
    return b"%05d\n" % number * 40_000


def work(mount, over, seed):
    """Contract and read items until the mount has ended."""
    drawn = random.Random(seed)
    while not over.is_set():
        name = f"copy{drawn.randrange(ITEMS)}"
        with contextlib.suppress(OSError):
            if drawn.random() < 0.5:
                mount.contract(name)
            else:
                (mount.path / name).read_bytes()


def test_a_killed_mount_leaves_files_whole_or_contracted(unmounted):
    mount = unmounted.start()
    for number in range(ITEMS):
        (mount.path / f"source{number}").write_bytes(content(number))
        (mount.path / f"copy{number}").write_bytes(content(number))
        mount.attach(f"copy{number}", "concat", of=f"source{number}")
    drawn = random.Random(1)
    states = set()
    for kill in range(KILLS):
        over = threading.Event()
        threads = [threading.Thread(target=work, args=(mount, over, kill * 10 + one)) for one in range(3)]
        for thread in threads:
            thread.start()
        time.sleep(drawn.uniform(0.05, 0.6))  # any moment will do
        mount.kill()
        over.set()
        for thread in threads:
            thread.join()
        mount.start()
        for number in range(ITEMS):
            stored = mount.source / f"copy{number}"
            contracted = StoredState.decode(os.getxattr(stored, STORED)).contracted
            states.add(contracted)
            assert stored.read_bytes() == (b"" if contracted else content(number))
            assert (mount.path / f"copy{number}").stat().st_size == len(content(number))
        assert os.listdir(mount.source / ".sluice-motif") == []
    assert states == {True, False}
    for number in range(ITEMS):
        assert (mount.path / f"copy{number}").read_bytes() == content(number)


def test_a_mount_ends_on_a_signal_and_begins_where_it_was(mount):
    (mount.path / "source").write_bytes(content(1))
    (mount.path / "copy").write_bytes(content(1))
    mount.attach("copy", "concat", of="source")
    mount.contract("copy")
    assert mount.stop() == 0
    assert not mount.mounted()
    mount.start()
    assert mount.state("copy") == "contracted"
    assert (mount.path / "copy").read_bytes() == content(1)


def test_a_service_manager_hears_of_a_mount_and_that_it_serves(unmounted, tmp_path):
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(str(tmp_path / "notify"))
        manager.settimeout(60)
        unmounted.environment |= {"NOTIFY_SOCKET": str(tmp_path / "notify"), "WATCHDOG_USEC": "20000"}
        unmounted.start()
        assert [manager.recv(100) for _ in range(3)] == [b"READY=1", b"WATCHDOG=1", b"WATCHDOG=1"]


def test_a_folder_is_mounted_once(mount, tmp_path):
    (tmp_path / "second").mkdir()
    refused = mount.run("mount", mount.source, tmp_path / "second")
    assert refused.returncode == 1
    assert refused.stderr.splitlines()[-1] == "sluice-motif-fs: the folder is mounted already, by another process"
