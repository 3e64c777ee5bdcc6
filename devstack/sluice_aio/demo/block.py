"""A demo of volumes: one found by demand, attached, slowed by a sentence, and encrypted by another.

A volume is created in the cheapest tier that meets a demand, attached to this machine, formatted and
written.  A sentence slows it, live.  Another encrypts the volumes that its tenant creates from then on.  Then the demo
reads the back end's files: the written text is in the first and not in the second.
"""

from __future__ import annotations

import contextlib
import mmap
import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from sluice_aio.base.layout import Layout
from sluice_aio.base.setup import KEYSTONE, Setup
from sluice_aio.cluster.cluster import Cluster
from sluice_aio.cluster.records import uninterrupted
from sluice_aio.demo.verify import Check
from sluice_aio.errors import LaunchError
from sluice_aio.keystone import seed
from sluice_aio.keystone.http import KeystoneHttp
from sluice_client import ApiError, Client, Unreachable

SERVICES: Final = frozenset({"redis", "rabbit", "agent", "actors", "api", "cinder", "konnector"})
OWNER: Final = "alice"
LIMIT: Final = 5
SLOW: Final = "FOR VOLUME {project}/data DO SET throttling WITH max_bw={limit}MBps"
ENCRYPTED: Final = "FOR TENANT {project} DO SET encryption"
_TEXT: Final = b"every byte of this line is readable by whoever has the disk\n"
_WAIT: Final = 30.0
_MB: Final = 1_000_000
#: The beginning of a LUKS header.
_LUKS: Final = b"LUKS\xba\xbe"
#: Needed programs besides those of the launcher.
_PROGRAMS: Final = {"mkfs.ext4": "e2fsprogs", "e2fsck": "e2fsprogs"}


@dataclass
class BlockDemo:
    """One run on a running cluster."""

    cluster: Cluster
    checks: list[Check] = field(default_factory=list)

    def __post_init__(self) -> None:
        _, self._project, _ = seed.PEOPLE[OWNER]
        self._admin = self._client(seed.ADMIN, seed.password(self.cluster.layout, seed.ADMIN), seed.ADMIN)
        self._owner = self._client(OWNER, *seed.PEOPLE[OWNER][:2])

    def run(self) -> bool:
        """Return True if all checks passed."""
        self._make_tiers()
        plain = self._make("data")
        with self._mounted(plain) as folder:
            free = _write(folder / "before", 100 * _MB)
            self._slow(folder, free)
        self._say(ENCRYPTED.format(project=self._project))
        secret = self._make("secret")
        with self._mounted(secret) as folder:
            _write(folder / "text", 10 * _MB)
        self._compare(plain, secret)
        for volume in (plain, secret):
            self._owner.detach_volume(volume, wait=_WAIT)
            self._owner.delete_volume(volume, wait=_WAIT)
        left = [one["name"] for one in self._owner.volumes()]
        self._check("both are detached and deleted", not left, ", ".join(left))
        print()
        for check in self.checks:
            print(f"{'ok  ' if check.good else 'FAIL'} {check.name:<52} {check.detail}")
        return all(check.good for check in self.checks)

    # -- steps

    def _make_tiers(self) -> None:
        tiers = self._admin.collection("/volumes/tiers")
        deadline = time.monotonic() + _WAIT
        while not {"fast", "slow"} <= {one["name"].rpartition("#")[2] for one in self._admin.pools()}:
            if time.monotonic() > deadline:
                raise LaunchError("no actor host has read the pools of Cinder")
            time.sleep(0.2)
        tiers.create({"name": "good", "bandwidth": "200MBps", "fabric": "nbd", "cost": 5})
        tiers.create({"name": "cheap", "bandwidth": "20MBps", "fabric": "nbd", "cost": 1})
        print("tiers      good: 200 MB/s, cost 5; cheap: 20 MB/s, cost 1")

    def _make(self, name: str) -> str:
        """A volume, attached to this node and formatted; its id."""
        made = self._owner.create_volume(1, wait=_WAIT, name=name, bandwidth="100MBps")
        volume = str(made["volume"])
        attached = self._owner.attach_volume(volume, self.cluster.layout.node, wait=_WAIT)
        if attached["state"] != "done":
            raise LaunchError(f"volume `{name}` is not attached: {attached['reason']}")
        device = attached["data"]["device"]
        _run("mkfs.ext4", "-q", device)
        shown = self._admin.volume(volume)
        filters = ", ".join(one["keyword"] for one in shown["filters"]) or "none"
        place = f"tier {shown['tier']}, pool {shown['pool']}, {device}"
        print(f"volume     {name}: 1 GiB, 100 MB/s demanded; {place}, filters {filters}")
        self._check(f"`{name}` has the cheapest tier for 100 MB/s", shown["tier"] == "good", shown["tier"])
        return volume

    def _slow(self, folder: Path, free: float) -> None:
        policy = self._say(SLOW.format(project=self._project, limit=LIMIT))
        slowed = _write(folder / "slowed", 20 * _MB)
        self._admin.delete_policy(policy)
        print(f"writes     {free / _MB:.0f} MB/s before, {slowed / _MB:.2f} MB/s while the sentence holds")
        good = 0.8 * LIMIT * _MB <= slowed <= 1.05 * LIMIT * _MB
        self._check(f"the sentence held it to {LIMIT} MB/s", good, f"{slowed / _MB:.2f} MB/s")

    def _compare(self, plain: str, secret: str) -> None:
        """Compare the content of the back end's files."""
        readable, hidden = (_holds(self._file(one), _TEXT) for one in (plain, secret))
        self._check("the back end's file of `data` has the text", readable, f"volume-{plain}")
        self._check("that of `secret` does not", not hidden, f"volume-{secret}")
        with self._file(secret).open("rb") as file:
            begin = file.read(len(_LUKS))
        self._check("it begins with a LUKS header", begin == _LUKS, repr(begin))

    # -- helpers

    def _client(self, user: str, password: str, project: str) -> Client:
        login = KeystoneHttp(self.cluster.layout.keystone_url).login(user, password, project)
        return Client(self.cluster.api_url, login.id)

    def _say(self, sentence: str) -> str:
        made = self._admin.create_policy(sentence, wait=10)
        print(f"policy     {made['policy']}")
        return str(made["id"])

    def _check(self, name: str, good: bool, detail: str) -> None:
        self.checks.append(Check(name, good, detail))

    def _file(self, volume: str) -> Path:
        return self.cluster.layout.data / "cinder" / "nbd" / "fast" / f"volume-{volume}"

    @contextlib.contextmanager
    def _mounted(self, volume: str) -> Iterator[Path]:
        device = str(self._attached(volume)["device"])
        folder = self.cluster.layout.data / "mounted"
        folder.mkdir(exist_ok=True)
        _run("mount", device, str(folder))
        try:
            yield folder
        finally:
            _run("umount", str(folder))
        _run("e2fsck", "-fn", device)

    def _attached(self, volume: str) -> Any:
        found = [one for one in self._owner.volume_operations(volume=volume) if one["what"] == "attach"]
        return found[-1]["data"]


def _write(path: Path, size: int) -> float:
    """Write a file of lines of text, and return bytes per second until they were stored."""
    block = (_TEXT * (_MB // len(_TEXT) + 1))[:_MB]
    begin = time.monotonic()
    with path.open("wb") as file:
        for _ in range(size // _MB):
            file.write(block)
        file.flush()
        os.fsync(file.fileno())
    return size / (time.monotonic() - begin)


def _holds(path: Path, text: bytes) -> bool:
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        return content.find(text) >= 0


def _run(*command: str) -> None:
    """:raises LaunchError: with its output, if it fails
    :raises LaunchError: with what it said, when it fails
    """
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    if ended.returncode != 0:
        raise LaunchError(f"`{' '.join(command)}` failed: {ended.stderr.strip() or ended.stdout.strip()}")


def run_block_demo(layout: Layout, keep: bool) -> int:
    """Start a separate cluster, run the demo, stop it again; exit status 0 only if all checks passed.

    :raises LaunchError: for users other than root, and if a program is missing
    """
    if os.geteuid() != 0:
        raise LaunchError("loop devices and mounts are root's: run it as root")
    for program, package in _PROGRAMS.items():
        if shutil.which(program) is None:
            raise LaunchError(f"`{program}` is not installed, run `tools/bootstrap everything` or install {package}")
    began = time.monotonic()
    own = layout.for_demo()
    cluster = Cluster(own, SERVICES, setup=Setup(parts=frozenset(), auth=KEYSTONE))
    for one in (Cluster(layout), cluster):  # both would use the same ports
        one.refuse_when_running()
    if own.folder.exists():
        shutil.rmtree(own.folder)
    good = finished = False
    try:
        cluster.start(lambda line: print(line, flush=True))
        good = BlockDemo(cluster).run()
        finished = True
    except (ApiError, Unreachable) as error:
        raise LaunchError(str(error)) from error
    finally:
        if not (keep and finished):
            with uninterrupted():
                cluster.stop()
    print(f"\n{'everything held' if good else 'NOT everything held'}, {time.monotonic() - began:.0f} seconds")
    if keep:
        print(f"the cluster runs on: api {cluster.api_url}; stop it with `make down`")
    elif good:
        shutil.rmtree(own.folder)
    else:
        print(f"logs and data are in {own.folder}")
    return 0 if good else 1
