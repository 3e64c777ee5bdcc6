"""The connector dictionary: the properties of this machine for Cinder's drivers when a volume is attached."""

from __future__ import annotations

import platform
import socket
import sys
from pathlib import Path
from typing import Any, Final

#: For Sluice's NBD driver: each connection of this volume's data path has one request at a time (``native/nbd``).
SINGLE_REQUESTS: Final = "sluice_single_requests"
_INITIATOR: Final = Path("etc/iscsi/initiatorname.iscsi")
_NQN: Final = Path("etc/nvme/hostnqn")
_FIBRE_CHANNEL: Final = Path("sys/class/fc_host")


def connector_properties(ip: str, root: Path = Path("/")) -> dict[str, Any]:
    """Return the dictionary; properties that this machine lacks are left out.

    :param ip: its address for other machines
    :param root: the root folder of the machine's files
    """
    properties: dict[str, Any] = {
        "host": socket.gethostname(),
        "ip": ip,
        "platform": platform.machine(),
        "os_type": sys.platform,
        "multipath": False,
        "do_local_attach": False,
    }
    initiator = _read(root / _INITIATOR)
    names = [line.partition("=")[2].strip() for line in initiator.splitlines() if line.startswith("InitiatorName=")]
    if names:
        properties["initiator"] = names[0]
    if nqn := _read(root / _NQN).strip():
        properties["nqn"] = nqn
    for name, file in (("wwpns", "port_name"), ("wwnns", "node_name")):
        values = [_read(one / file).strip().removeprefix("0x") for one in sorted((root / _FIBRE_CHANNEL).glob("*"))]
        if values:
            properties[name] = values
    return properties


def _read(path: Path) -> str:
    """Return the file's text; empty when it is missing or not readable."""
    try:
        return path.read_text(encoding="utf-8")
    except OSError:
        return ""
