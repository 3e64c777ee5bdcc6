"""Writes the configuration of Swift: proxies, account, container and object servers, daemons, rsync; and the rings.

Rings have every device once, three replicas (or fragments), account and container on the same devices.
"""

from __future__ import annotations

import configparser
import secrets
from typing import Final

from swift.common.ring import RingBuilder

from sluice_aio.base.files import Options, section
from sluice_aio.base.layout import DATABASE_DEVICES, OBJECT_DEVICES, OBJECT_HOMES, Layout
from sluice_aio.base.ports import HOST
from sluice_aio.base.setup import EC21, HOMES, POLICIES, Setup
from sluice_aio.conf.common import USERS
from sluice_aio.conf.proxy import proxy_conf
from sluice_aio.conf.storage import client_conf, home_conf, rsync_conf, storage_conf

__all__ = ["PROXIES", "USERS", "build_rings", "object_rings", "proxy_conf", "storage_conf", "write_swift"]

#: The available proxies; ``proxy2`` is that of a second node with an agent of its own.
PROXIES: Final = ("proxy", "proxy2", "plain", "encrypted")
_CLIENTS: Final = ("expirer", "reconciler", "internal-client")
_DISKFILES: Final = {
    "replication": "egg:openstack-sluice#replication.fs",
    "erasure_coding": "egg:openstack-sluice#erasure_coding.fs",
}
_FRAGMENTS: Final = {"ec_type": "liberasurecode_rs_vand", "ec_num_data_fragments": "2", "ec_num_parity_fragments": "1"}
PART_POWER: Final = 8
REPLICAS: Final = 3


def main_conf(setup: Setup, suffix: str) -> str:
    """swift.conf: the hash suffix and the storage policies."""
    sections = [section("swift-hash", {"swift_hash_path_suffix": suffix})]
    for index, name in enumerate(POLICIES):
        kind = "erasure_coding" if name == EC21 else "replication"
        options: dict[str, str] = {"name": name, "policy_type": kind}
        options |= _FRAGMENTS if name == EC21 else {}
        options |= {"diskfile_module": _DISKFILES[kind]} if "diskfile" in setup.parts else {}
        options |= {"default": "yes"} if name == setup.default_policy else {}
        sections.append(section(f"storage-policy:{index}", options))
    return "\n".join(sections)


def _kept(layout: Layout, file: str, name: str, option: str) -> str:
    """The value in ``file`` (another value would hide stored data), or a new random value."""
    parser = configparser.ConfigParser(interpolation=None)
    parser.read(layout.swift_dir / file)
    return parser.get(name, option, fallback=secrets.token_hex(8))


def _realms(layout: Layout) -> Options:
    key = _kept(layout, "container-sync-realms.conf", "sluice", "key")
    return {"key": key, "cluster_aio": f"http://{HOST}:{layout.ports['proxy']}/v1/"}


def _proxy(layout: Layout, name: str, setup: Setup) -> str:
    node = layout.second_node() if name == "proxy2" else layout
    return proxy_conf(node, plain=name in ("plain", "encrypted"), setup=setup, server=name)


def write_swift(layout: Layout, setup: Setup | None = None) -> None:
    """Write everything in the Swift folder except the rings, and the device folders."""
    setup = Setup() if setup is None else setup
    layout.swift_dir.mkdir(parents=True, exist_ok=True)
    suffix = _kept(layout, "swift.conf", "swift-hash", "swift_hash_path_suffix")
    texts = {
        "swift.conf": main_conf(setup, suffix),
        "container-sync-realms.conf": section("sluice", _realms(layout)),
        "rsyncd.conf": rsync_conf(layout),
    }
    texts |= {f"{name}.conf": _proxy(layout, name, setup) for name in PROXIES}
    texts |= {f"{name}.conf": storage_conf(layout, name, setup) for name in ("account", "container", *OBJECT_DEVICES)}
    texts |= {f"{name}.conf": client_conf(layout, name, setup) for name in _CLIENTS}
    if HOMES in setup.parts:
        texts |= {f"{name}.conf": home_conf(layout, name) for name in OBJECT_HOMES}
    for file, text in texts.items():
        (layout.swift_dir / file).write_text(text, encoding="utf-8")
    folders = [layout.devices / "databases" / device for device in DATABASE_DEVICES]
    folders += [layout.device(server) for server in OBJECT_DEVICES]
    folders += [layout.recon / name for name in ("account", "container", *OBJECT_DEVICES, *_CLIENTS)]
    for folder in folders:
        folder.mkdir(parents=True, exist_ok=True)


def device(layout: Layout, number: int, server: str, name: str) -> dict[str, object]:
    """A device in the form of ring builders; ``name`` is its folder's."""
    ip, port = layout.address(server), layout.ports[server]
    address = {"ip": ip, "port": port, "replication_ip": ip, "replication_port": port}
    # a zone per device, so replicas never share one
    return {"id": number, "region": 1, "zone": number + 1, "weight": 1.0, "device": name, **address}


def object_rings() -> list[str]:
    """A ring per storage policy; the name of the first has no number."""
    return [f"object-{index}" if index else "object" for index in range(len(POLICIES))]


def build_rings(layout: Layout) -> None:
    """Write ``account``, ``container``, ``object`` and ``object-1.ring.gz`` into the Swift folder."""
    layout.swift_dir.mkdir(parents=True, exist_ok=True)
    members = {
        "account": [("account", device) for device in DATABASE_DEVICES],
        "container": [("container", device) for device in DATABASE_DEVICES],
        **{ring: list(OBJECT_DEVICES.items()) for ring in object_rings()},
    }
    for ring, devices in members.items():
        builder = RingBuilder(PART_POWER, REPLICAS, 1)
        for number, (server, name) in enumerate(devices):
            builder.add_dev(device(layout, number, server, name))
        builder.rebalance(seed=1)
        builder.get_ring().save(str(layout.swift_dir / f"{ring}.ring.gz"))
