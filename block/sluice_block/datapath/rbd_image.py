"""An image of Ceph (RBD), from Cinder's connection: its cluster and its user.

The key is the ``keyring`` of the connection, written into a file that only its user may read; without one it is that of
this machine, ``/etc/ceph/ceph.client.USER.keyring``, where Ceph's own programs search for it.  Other settings of the
machine's ``/etc/ceph/CLUSTER.conf`` apply, too; the monitors are those of the connection.

An image is split into objects, whose OSDs depend only on their names, whether they were written or not.  A large image
has many: to find its OSDs, some of them are looked up, evenly spread.
"""

from __future__ import annotations

import configparser
import json
import os
import shlex
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from sluice_block.datapath import processes
from sluice_block.datapath.records import write_secret
from sluice_core.errors import CallerError, DecodeError
from sluice_volumes.messages import OsdShare, RbdLocality

#: Type of Cinder's connection.
RBD: Final = "rbd"
_CONF: Final = Path("/etc/ceph")


@dataclass(frozen=True, slots=True)
class RbdImage:
    """One image.

    :param monitors: address and port of each
    :param user: without ``client.``
    :param key: of the user, in Ceph's encoding; empty for that of the machine
    :param cluster: its name, as in the machine's configuration
    """

    pool: str
    name: str
    monitors: tuple[tuple[str, str], ...]
    user: str
    key: str = field(default="", repr=False)
    cluster: str = "ceph"

    @classmethod
    def of(cls, data: Mapping[str, Any]) -> RbdImage:
        """
        :param data: of Cinder's connection
        :raises CallerError: when a field is missing
        """
        path = str(data.get("name", ""))
        pool, _, name = path.partition("/")
        if not (pool and name):
            raise CallerError(f"`name` of a connection of type `{RBD}` is `{path}`, expected POOL/IMAGE")
        hosts, ports = data.get("hosts"), data.get("ports")
        if not isinstance(hosts, list) or not isinstance(ports, list) or not hosts or len(hosts) != len(ports):
            raise CallerError(f"connection of type `{RBD}` has no `hosts` with as many `ports`")
        monitors = tuple((str(host).strip("[]"), str(port)) for host, port in zip(hosts, ports, strict=True))
        user = str(data.get("auth_username") or "admin")
        key = _key_in(str(data.get("keyring") or ""), user)
        return cls(pool, name, monitors, user, key, str(data.get("cluster_name") or "ceph"))

    def block_nodes(self, name: str, folder: Path) -> tuple[list[dict[str, Any]], list[str]]:
        """Return the block node ``name`` for a qemu-storage-daemon, as a list of one, and the objects that it needs.

        :param folder: the folder for the key file
        """
        servers = [{"host": host, "port": port} for host, port in self.monitors]
        node: dict[str, Any] = {
            "driver": RBD,
            "node-name": name,
            "pool": self.pool,
            "image": self.name,
            "user": self.user,
            "conf": self._conf(),
            "server": servers,
            "discard": "unmap",
            # answered writes are stored: the daemon may be killed and restarted under a running stack
            "cache": {"direct": True},
        }
        if not self.key:
            return [node], []
        path = write_secret(folder / "rbd.key", self.key)
        node |= {"key-secret": "key", "auth-client-required": ["cephx"]}
        return [node], [f"secret,id=key,format=base64,file={str(path).replace(',', ',,')}"]

    def client_options(self, folder: Path) -> list[str]:
        """Return the options with which Ceph's own programs reach the same cluster as the same user.

        :param folder: the folder for the key file
        """
        monitors = ",".join(f"[{host}]:{port}" if ":" in host else f"{host}:{port}" for host, port in self.monitors)
        options = ["--conf", self._conf(), "--id", self.user, "-m", monitors]
        if self.key:
            text = f"[client.{self.user}]\nkey = {self.key}\n"
            options += ["--keyring", str(write_secret(folder / "rbd.keyring", text))]
        return options

    def _conf(self) -> str:
        """Return the configuration of this machine, or an empty one: without any, Ceph's library searches for no
        keyring.
        """
        path = _CONF / f"{self.cluster}.conf"
        return str(path) if path.exists() else os.devnull


def _key_in(keyring: str, user: str) -> str:
    """Return the key of a user in the text of a keyring, which may also be the key alone."""
    if "[" not in keyring:
        return keyring.strip()
    parser = configparser.ConfigParser(interpolation=None, strict=False)
    try:
        parser.read_string(keyring)
        return parser[f"client.{user}"]["key"]
    except (configparser.Error, KeyError):
        # without its cause, which quotes lines
        raise CallerError(f"`keyring` of a connection of type `{RBD}` has no key of `client.{user}`") from None


#: Number of objects that are looked up, some 40 ms each: a share of one half is then accurate to 12 % of the objects,
#: 19 times in 20.
SAMPLE: Final = 64
#: Replaces an OSD that an erasure-coded pool lacks.
_NONE: Final = 0x7FFFFFFF


def find_osds(image: RbdImage, folder: Path) -> RbdLocality:
    """Look up the OSDs of an image in Ceph; two commands for every image size.

    :param folder: for the key, as of :meth:`RbdImage.client_options`
    :raises PeerError: when Ceph has no such image, or does not answer
    """
    options = image.client_options(folder)
    what = f"finding the OSDs of `{image.pool}/{image.name}`"
    words = ["rbd", *options, "info", "--pool", image.pool, "--image", image.name, "--format", "json"]
    (info,) = _documents(processes.run(words, what))
    pool, objects = str(info.get("data_pool", image.pool)), int(info["objects"])
    lines = [shlex.join(["osd", "map", pool, name]) for name in _sample(info, objects)]
    text = "\n".join([*lines, "osd tree"]) + "\n"
    *maps, tree = _documents(processes.run(["ceph", *options, "--format", "json"], what, given=text))
    if len(maps) != len(lines):
        raise DecodeError(f"{what}: {len(maps)} answers to {len(lines)} questions")
    return RbdLocality(pool, objects, len(maps), tuple(_shares(maps, _hosts(tree))))


def _sample(info: Mapping[str, Any], objects: int) -> list[str]:
    """Return names of objects, evenly spread over the image."""
    digits = 16 if info["format"] > 1 else 12
    count = min(objects, SAMPLE)
    return [f"{info['block_name_prefix']}.{number * objects // count:0{digits}x}" for number in range(count)]


def _shares(maps: Sequence[Mapping[str, Any]], hosts: Mapping[int, str]) -> list[OsdShare]:
    copies = Counter(osd for one in maps for osd in set(one["acting"]))
    primaries = Counter(one["acting_primary"] for one in maps)
    return [
        OsdShare(osd, hosts.get(osd, ""), count / len(maps), primaries[osd] / len(maps))
        for osd, count in sorted(copies.items(), key=lambda pair: (-pair[1], pair[0]))
        if 0 <= osd < _NONE
    ]


def _hosts(tree: Mapping[str, Any]) -> dict[int, str]:
    return {osd: one["name"] for one in tree["nodes"] if one["type"] == "host" for osd in one["children"]}


def _documents(text: str) -> Iterator[Any]:
    """Yield the JSON documents that follow one another in a text.

    :raises DecodeError: when other text is among them
    """
    decoder, place = json.JSONDecoder(), 0
    text = text.strip()
    while place < len(text):
        try:
            document, place = decoder.raw_decode(text, place)
        except ValueError as error:
            raise DecodeError(f"Ceph answered no JSON: {error}", text[place:].encode()) from error
        yield document
        while place < len(text) and text[place].isspace():
            place += 1
