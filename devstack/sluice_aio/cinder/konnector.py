"""The konnector of a node: its configuration, and what it leaves outside its process.

Volumes stay attached when it ends, as in production.  ``down`` ends them as a machine does that halts, and the next
``up`` attaches them again.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from sluice_aio.base.certificates import ensure_certificate
from sluice_aio.base.ini import section
from sluice_aio.base.layout import Layout
from sluice_aio.base.ports import HOST
from sluice_aio.base.setup import KEYSTONE, Setup
from sluice_aio.errors import LaunchError
from sluice_aio.keystone import seed
from sluice_block.konnector.konnector import Konnector
from sluice_sandbox.docker.locations import cache_folder

SERVICE: Final = "konnector"


def run_folder(layout: Layout) -> Path:
    """Its socket, and those of its volumes; a short path, since Linux refuses long ones of sockets."""
    return layout.run / f"k{layout.suffix}"


def state_folder(layout: Layout) -> Path:
    """What is attached."""
    return layout.data / f"{SERVICE}{layout.suffix}"


def log_folder(layout: Layout) -> Path:
    """The logs of requests of volumes."""
    return layout.logs / f"volumes{layout.suffix}"


def write_konnector(layout: Layout, setup: Setup) -> None:
    """Its configuration; with Keystone it can be called over TLS, too.

    :param layout: as its node sees the cluster
    """
    name = f"{SERVICE}{layout.suffix}"
    options = {
        "node": layout.node,
        "run_dir": str(run_folder(layout)),
        "state_dir": str(state_folder(layout)),
        "cache_dir": str(cache_folder() / "nbdkit"),
        "log_dir": str(log_folder(layout)),
        "agent_socket": str(layout.agent_socket),
        "code_dir": str(layout.code),
        "snapshot_dir": str(layout.snapshots),
    }
    logins = ""
    if setup.auth == KEYSTONE:
        key = layout.configs / f"{SERVICE}.key"
        ensure_certificate(layout.konnector_certificate, key)
        options |= {"bind": f"{HOST}:{layout.ports[name]}"}
        options |= {"tls_cert": str(layout.konnector_certificate), "tls_key": str(key)}
        logins = "\n" + section("keystone_authtoken", seed.authtoken(layout, "sluice"))
    path = layout.configs / f"{name}.conf"
    path.touch(mode=0o600)  # it may hold a password
    path.write_text(section(SERVICE, options) + logins, encoding="utf-8")


def release(layout: Layout) -> None:
    """End the volumes that are attached, on both nodes.

    :raises LaunchError: naming who holds which
    """
    reasons = []
    for node in (layout, layout.second_node()):
        if state_folder(node).exists():
            reasons += Konnector(state_folder(node), run_folder(node), cache_folder(), log_folder(node)).halt()
    if reasons:
        raise LaunchError("; ".join(reasons))
