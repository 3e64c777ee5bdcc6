"""Hosts of a cluster: a scratch root each, with an address, on one Ethernet, with nothing behind it.

A host can lose its power (``lab.cut_power(name)``) and its cable (``lab.unplug(name)``).  Other hosts hear nothing of
either: no connection is closed, packets are lost.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final

from tests.support.hosts.scratch_root import ScratchRoot

HERE: Final = Path(__file__).parent
#: Host → address, out of the block for documentation.
ADDRESSES: Final = {
    "controller": "192.0.2.11",
    "controller2": "192.0.2.12",
    "controller3": "192.0.2.13",
    "proxy1": "192.0.2.21",
    "storage1": "192.0.2.31",
    "storage2": "192.0.2.32",
    "storage3": "192.0.2.33",
}
_SWITCH: Final = "ip link add name br0 type bridge && ip link set br0 up && echo ready && exec sleep infinity"


class Host(ScratchRoot):
    """One machine; ``folder/files`` is copied over its root.

    :param shown: as of ``ScratchRoot``
    """

    def __init__(self, folder: Path, name: str, address: str, shown: Iterable[Path] = ()) -> None:
        super().__init__(folder, name, HERE / "host.sh", [HERE.parents[2], *shown])
        self.address = address
        self.folder = folder

    def path(self) -> str:
        """Where programs are; Python is the one that the wheels are for."""
        return f"/usr/local/bin:{sys.base_prefix}/bin:{super().path()}"

    def show(self, source: Path, place: str) -> None:
        """Let a folder that is shown be at another place, too, and be written to there."""
        layers = f"/run/layers/{place.strip('/').replace('/', '-')}"
        mount = f"lowerdir={source},upperdir={layers}/changes,workdir={layers}/work"
        self.run("mkdir", "-p", f"{layers}/changes", f"{layers}/work", place)
        self.run("mount", "-t", "overlay", "-o", mount, "overlay", place)


class Lab:
    """``with Lab(folder) as lab: lab.add(lab.host("controller"))``: hosts end with it.

    :param folder: of the hosts; where it has a folder ``wheelhouse``, this is /opt/wheelhouse of each
    :param addresses: host → address
    :param shown: folders of this machine that all hosts show
    """

    def __init__(self, folder: Path, addresses: Mapping[str, str] = ADDRESSES, shown: Iterable[Path] = ()) -> None:
        self.folder = folder
        self.hosts: dict[str, Host] = {}
        self._addresses = addresses
        self._shown = tuple(shown)
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
        found = Host(self.folder / name, name, self._addresses[name], self._shown)
        names = [("localhost", "127.0.0.1"), *self._addresses.items()]
        write_file(found, "/etc/hosts", "".join(f"{address} {one}\n" for one, address in names))
        return found

    def add(self, host: Host) -> Host:
        """Start a host and plug it in."""
        host.start()
        self.hosts[host.name] = host
        link = ["name", _port(host.name), "type", "veth", "peer", "name", "eth0", "netns", str(host.init)]
        self._set("add", *link)
        self._set("set", _port(host.name), "master", "br0")
        self.plug(host.name)
        _ip(str(host.init), "address", "add", f"{host.address}/24", "dev", "eth0")
        _ip(str(host.init), "link", "set", "eth0", "up")
        host.run("systemd-tmpfiles", "--create", "--prefix=/run")  # as at each boot
        return host

    def cut_power(self, name: str) -> None:
        """End a host, whose processes cannot even close their connections."""
        self._set("delete", _port(name))
        self.hosts.pop(name).stop()

    def unplug(self, name: str) -> None:
        """Lose all packets from and to a host from now on."""
        self._set("set", _port(name), "down")

    def plug(self, name: str) -> None:
        """Undo :meth:`unplug`."""
        self._set("set", _port(name), "up")

    @contextlib.contextmanager
    def network_of(self, name: str) -> Iterator[None]:
        """Inside, this thread makes its sockets in the network of a host, and its children live there."""
        with (
            open("/proc/thread-self/ns/net", "rb") as ours,
            open(f"/proc/{self.hosts[name].init}/ns/net", "rb") as theirs,
        ):
            _enter(theirs.fileno())
            try:
                yield
            finally:
                _enter(ours.fileno())

    def _set(self, *words: str) -> None:
        """Change a link of the switch."""
        assert self._switch is not None
        bridge = Path(f"/proc/{self._switch.pid}/task/{self._switch.pid}/children").read_text().split()[0]
        _ip(bridge, "link", *words)


def write_file(host: Host, path: str, text: str) -> None:
    """Add a file to a host that is not started yet."""
    place = host.folder / "files" / path.lstrip("/")
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(text, encoding="utf-8")


def _port(name: str) -> str:
    return f"p-{name}"  # a link's name has at most 15 characters


def _ip(namespace: str, *words: str) -> None:
    subprocess.run(["nsenter", "--target", namespace, "--net", "ip", *words], check=True)


def _enter(namespace: int) -> None:
    """What ``os.setns`` does, which Python has since 3.12."""
    library = ctypes.CDLL(None, use_errno=True)
    if library.setns(namespace, 0) != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), "setns")
