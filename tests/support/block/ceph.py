"""A Ceph cluster on files: a monitor, a manager and OSDs, on 127.0.0.1 and in one folder.

An OSD's disk is a sparse file, so that neither LVM nor a device is needed.  All daemons and clients log in with keys
(cephx), as in production: ``client.admin``, and ``client.cinder``, which uses images.  Each OSD has a copy of each
object; the cluster serves with one of them.
"""

from __future__ import annotations

import base64
import json
import os
import struct
import subprocess
import time
import uuid
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final, Self

from sluice_aio.base.files import section
from sluice_aio.base.ports import HOST, free_ports
from sluice_aio.base.server import Child
from sluice_aio.cinder.conf import CEPH_POOL, CEPH_USER
from sluice_core.errors import PeerError

_ROOT: Final = Path(__file__).parents[3]
_OSDS: Final = ("osd.0", "osd.1")
#: Placement groups of the pool: enough for both OSDs to be the first of some.
_GROUPS: Final = 8
#: Seconds in which a command has answered, and in which the cluster is healthy.
_LIMIT: Final = 60.0
#: Bytes of an OSD's disk, which is sparse.
_DISK: Final = 4 << 30
_CAPABILITIES: Final = {
    "mon.": {"mon": "allow *"},
    "client.admin": {"mon": "allow *", "mgr": "allow *", "osd": "allow *"},
    "mgr.x": {"mon": "allow profile mgr", "osd": "allow *"},
    **{name: {"mon": "allow profile osd", "mgr": "allow profile osd", "osd": "allow *"} for name in _OSDS},
    f"client.{CEPH_USER}": dict.fromkeys(("mon", "mgr", "osd"), "profile rbd"),
}


class CephCluster:
    """A context manager: the cluster serves and has the pool while it is entered, and is removed afterwards.

    :param folder: of all its files; a short path, since sockets are in it
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.conf = folder / "ceph.conf"
        self.keyring = folder / "keyring"
        self._daemons: dict[str, Child] = {}

    def __enter__(self) -> Self:
        try:
            self._create()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def run(self, *command: str) -> str:
        """The output of a program of Ceph's, run as ``client.admin``.

        :raises PeerError: with its output, when it fails or does not end
        """
        words = [command[0], "--conf", str(self.conf), *command[1:]]
        try:
            done = subprocess.run(words, capture_output=True, text=True, timeout=_LIMIT, check=False)
        except subprocess.TimeoutExpired as error:
            raise PeerError(f"`{' '.join(command)}` has not ended after {_LIMIT:g} s") from error
        if done.returncode:
            raise PeerError(f"`{' '.join(command)}`: {done.stderr.strip()}")
        return done.stdout

    def ask(self, *command: str) -> Any:
        """The response of ``ceph`` to a command."""
        return json.loads(self.run("ceph", *command, "--format", "json"))

    def key(self, name: str = f"client.{CEPH_USER}") -> str:
        """The key of a user."""
        return str(self.ask("auth", "get", name)[0]["key"])

    def kill_osd(self, number: int) -> None:
        """Kill an OSD."""
        self._daemons[f"osd.{number}"].kill()

    def start_osd(self, number: int) -> None:
        """Start an OSD that does not run."""
        self._daemons[f"osd.{number}"].start()

    def wait_degraded(self) -> None:
        """Return when Ceph knows that an OSD is down, and its copies are missing."""

        def is_degraded() -> bool:
            return self.ask("osd", "stat")["num_up_osds"] < len(_OSDS) and not self._is_well()

        self._wait("misses no OSD", is_degraded)

    def wait_well(self) -> None:
        """Return when every object has all its copies."""
        self._wait("is not well", self._is_well)

    def stop(self) -> None:
        """Stop all daemons: an OSD without a monitor stops late."""
        with ThreadPoolExecutor() as together:
            list(together.map(Child.stop, [self._daemons[name] for name in _OSDS if name in self._daemons]))
        for name in ("mgr.x", "mon.x"):
            if name in self._daemons:
                self._daemons[name].stop()

    def _create(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        port, *others = free_ports(8)
        fsid = str(uuid.uuid4())
        self.conf.write_text(self._settings(fsid, port, others), encoding="ascii")
        self.keyring.touch(mode=0o600)
        self.keyring.write_text("".join(section(name, _entity(name)) for name in _CAPABILITIES), encoding="ascii")
        monmap = str(self.folder / "monmap")
        self.run("monmaptool", "--create", "--fsid", fsid, "--addv", "x", f"[v2:{HOST}:{port}]", monmap)
        self.run("ceph-mon", "--mkfs", "-i", "x", "--monmap", monmap, "--keyring", str(self.keyring))
        self._start("mon.x")
        (self.folder / "mgr").mkdir()
        self._start("mgr.x")
        with ThreadPoolExecutor() as together:
            list(together.map(self._create_disk, range(len(_OSDS))))
        for name in _OSDS:  # by this thread; the kernel ends them with it
            self._start(name)
        self.run("ceph", "osd", "pool", "create", CEPH_POOL, str(_GROUPS))
        self.run("rbd", "pool", "init", CEPH_POOL)
        self.wait_well()

    def _create_disk(self, number: int) -> None:
        disk = str(uuid.uuid4())
        (self.folder / f"osd-{number}").mkdir()
        self.run("ceph", "osd", "new", disk, str(number))
        self.run("ceph-osd", "--mkfs", "-i", str(number), "--osd-uuid", disk)

    def _start(self, name: str) -> None:
        kind, _, number = name.partition(".")
        command = [f"ceph-{kind}", "--conf", str(self.conf), "-i", number, "--foreground"]
        self._daemons[name] = Child(command, self.folder / f"{name}.out", tied=True)
        self._daemons[name].start()

    def _is_well(self) -> bool:
        states = self.ask("pg", "stat")["pg_summary"]
        by_state = {one["name"]: one["num"] for one in states["num_pg_by_state"]}
        return bool(by_state) and set(by_state) == {"active+clean"} and by_state["active+clean"] >= _GROUPS

    def _wait(self, what: str, condition: Callable[[], bool]) -> None:
        deadline = time.monotonic() + _LIMIT
        while not condition():
            if time.monotonic() > deadline:
                raise PeerError(f"Ceph {what} after {_LIMIT:g} s: {self.run('ceph', 'status')}")
            time.sleep(0.1)

    def _settings(self, fsid: str, port: int, others: list[int]) -> str:
        here = self.folder
        return section(
            "global",
            {
                "fsid": fsid,
                "mon_host": f"v2:{HOST}:{port}",
                "ms_bind_msgr1": "false",
                "ms_bind_port_min": str(others[0]),
                "ms_bind_port_max": str(others[0] + 100),
                "public_addr": HOST,
                "cluster_addr": HOST,
                "keyring": str(self.keyring),
                "run_dir": str(here),
                "admin_socket": f"{here}/$name.$pid.asok",
                "pid_file": "",
                "log_file": f"{here}/$name.log",
                "log_to_stderr": "false",
                "crash_dir": str(here / "crash"),
                "mon_data": str(here / "mon"),
                "mon_data_avail_crit": "1",  # percent that must be free, for a machine with a large disk
                "mgr_data": str(here / "mgr"),
                "osd_data": f"{here}/osd-$id",
                "osd_pool_default_size": str(len(_OSDS)),
                "osd_pool_default_min_size": "1",
                "osd_pool_default_pg_autoscale_mode": "off",
                "mon_osd_min_down_reporters": "1",  # there is only one other
                "osd_crush_chooseleaf_type": "0",  # copies on OSDs of one machine
                "bluestore_block_size": str(_DISK),
                "bluestore_cache_autotune": "false",
                "bluestore_cache_size": str(64 << 20),
            },
        )


def install_programs() -> None:
    """Install the missing packages of Ceph, which are too large for every machine to have.

    :raises PeerError: naming the packages that could not be installed
    """
    done = subprocess.run([str(_ROOT / "tools" / "bootstrap"), "ceph"], capture_output=True, text=True, check=False)
    if done.returncode:
        raise PeerError(f"Ceph is not installed: {done.stderr.strip()}")


def _entity(name: str) -> dict[str, str]:
    """A new key, in Ceph's encoding (type, time, length, bytes), and the rights of its owner."""
    secret = struct.pack("<hiih", 1, int(time.time()), 0, 16) + os.urandom(16)
    rights = {f"caps {service}": f'"{allowed}"' for service, allowed in _CAPABILITIES[name].items()}
    return {"key": base64.b64encode(secret).decode("ascii"), **rights}
