"""Hosts of a cluster: a scratch root each, with an address, on one Ethernet, with nothing behind it."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from tests.support.hosts.scratch_root import ScratchRoot

from sluice_aio.keystone import venv

HERE: Final = Path(__file__).parent
#: Host → address, out of the block for documentation.
ADDRESSES: Final = {
    "controller": "192.0.2.11",
    "proxy1": "192.0.2.21",
    "storage1": "192.0.2.31",
    "storage2": "192.0.2.32",
    "storage3": "192.0.2.33",
}
_SWITCH: Final = "ip link add name br0 type bridge && ip link set br0 up && echo ready && exec sleep infinity"


class Host(ScratchRoot):
    """One machine; ``folder/files`` is copied over its root."""

    def __init__(self, folder: Path, name: str) -> None:
        super().__init__(folder, name, HERE / "setup.sh", [HERE.parents[2], venv.python().parents[1]])
        self.address = ADDRESSES[name]
        self.folder = folder

    def path(self) -> str:
        """Where programs are; Python is the one that the wheels are for."""
        return f"/usr/local/bin:{sys.base_prefix}/bin:{super().path()}"


class Lab:
    """``with Lab(folder) as lab: lab.add("controller")``: hosts end with it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.hosts: dict[str, Host] = {}
        self._switch: subprocess.Popen[str] | None = None

    def __enter__(self) -> Lab:
        command = ["unshare", "--net", "--fork", "--kill-child", "sh", "-ec", _SWITCH]
        self._switch = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
        assert self._switch.stdout is not None
        if self._switch.stdout.readline() != "ready\n":
            raise RuntimeError(f"no network between hosts: unshare ended with status {self._switch.wait()}")
        return self

    def __exit__(self, *ended: object) -> None:
        for host in self.hosts.values():
            host.stop()
        if self._switch is not None:
            self._switch.send_signal(signal.SIGKILL)
            self._switch.wait()
            assert self._switch.stdout is not None
            self._switch.stdout.close()

    def host(self, name: str) -> Host:
        """A host that is not there yet, with an empty ``files``."""
        found = Host(self.folder / name, name)
        write_file(found, "/etc/hosts", "".join(f"{address} {one}\n" for one, address in _names()))
        return found

    def add(self, host: Host) -> Host:
        """Start a host and plug it in."""
        host.start()
        self.hosts[host.name] = host
        assert self._switch is not None
        bridge = Path(f"/proc/{self._switch.pid}/task/{self._switch.pid}/children").read_text().split()[0]
        port = f"p-{host.name}"
        link = ["name", port, "type", "veth", "peer", "name", "eth0", "netns", str(host.init)]
        _ip(bridge, "link", "add", *link)
        _ip(bridge, "link", "set", port, "master", "br0", "up")
        _ip(str(host.init), "address", "add", f"{host.address}/24", "dev", "eth0")
        _ip(str(host.init), "link", "set", "eth0", "up")
        host.run("systemd-tmpfiles", "--create", "--prefix=/run")  # as at each boot
        return host


def write_file(host: Host, path: str, text: str) -> None:
    """Add a file to a host that is not started yet."""
    place = host.folder / "files" / path.lstrip("/")
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(text, encoding="utf-8")


def _names() -> Iterable[tuple[str, str]]:
    return [("localhost", "127.0.0.1"), *ADDRESSES.items()]


def _ip(namespace: str, *words: str) -> None:
    subprocess.run(["nsenter", "--target", namespace, "--net", "ip", *words], check=True)
