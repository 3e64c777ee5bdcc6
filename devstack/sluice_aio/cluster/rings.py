"""The rings: every device once, three replicas (or fragments), account and container on the same devices."""

from __future__ import annotations

from typing import Final

from swift.common.ring import RingBuilder

from sluice_aio.base.layout import DATABASE_DEVICES, OBJECT_DEVICES, Layout
from sluice_aio.base.ports import HOST
from sluice_aio.base.setup import POLICIES

PART_POWER: Final = 8
REPLICAS: Final = 3


def device(layout: Layout, number: int, server: str, name: str) -> dict[str, object]:
    """A device as ring builders take it; ``name`` is its folder's."""
    address = {"ip": HOST, "port": layout.ports[server]}
    replication = {"replication_ip": HOST, "replication_port": layout.ports[server]}
    # a zone per device, so that replicas never share one
    return {"id": number, "region": 1, "zone": number + 1, "weight": 1.0, "device": name, **address, **replication}


def object_rings() -> list[str]:
    """A ring per storage policy, the first one's without its number."""
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
