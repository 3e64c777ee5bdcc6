"""The configurations of account, container and object servers, and of the daemons beside them."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from sluice_aio.base import setup as cluster_setup
from sluice_aio.base.files import Options, section
from sluice_aio.base.layout import OBJECT_DEVICES, OBJECT_HOMES, Layout, code_host_options
from sluice_aio.base.ports import HOST
from sluice_aio.base.setup import Setup
from sluice_aio.conf.common import default
from sluice_aio.conf.proxy import proxy_filter

#: Every daemon of Swift that a cluster can run → its configurations.
DAEMONS: Final[dict[str, tuple[str, ...]]] = {
    "account-auditor": ("account",),
    "account-reaper": ("account",),
    "account-replicator": ("account",),
    "container-auditor": ("container",),
    "container-reconciler": ("reconciler",),
    "container-replicator": ("container",),
    "container-sharder": ("container",),
    "container-sync": ("container",),
    "container-updater": ("container",),
    "object-auditor": tuple(OBJECT_DEVICES),
    "object-expirer": ("expirer",),
    "object-reconstructor": tuple(OBJECT_DEVICES),
    "object-replicator": tuple(OBJECT_DEVICES),
    "object-updater": tuple(OBJECT_DEVICES),
}
#: Daemons that push with rsync.
WITH_RSYNC: Final = frozenset({"account-replicator", "container-replicator", "container-sharder", "object-replicator"})

#: Small enough that a test can shard a container.
_SHARDER: Final = {
    "auto_shard": "true",
    "shard_container_threshold": "100",
    "shard_scanner_batch_size": "10",
    "cleave_batch_size": "2",
}


def storage_conf(layout: Layout, server: str, setup: Setup | None = None) -> str:
    """The configuration of ``account``, ``container``, ``object1`` …, with a section for each of its daemons."""
    setup = Setup() if setup is None else setup
    kind = kind_of(server)
    app = "openstack-sluice#object" if kind == "object" and cluster_setup.OBJECT in setup.parts else f"swift#{kind}"
    names = ["healthcheck", *_ours(kind, setup), f"{kind}-server"]
    sections = [
        section("DEFAULT", _default(layout, server, setup)),
        section("pipeline:main", {"pipeline": " ".join(names)}),
        section(f"app:{kind}-server", {"use": f"egg:{app}"}),
        section("filter:healthcheck", {"use": "egg:swift#healthcheck"}),
        *(section(f"filter:{name}", _storage(_node(layout, server, setup), setup)) for name in _ours(kind, setup)),
        *(section(name, _daemon(layout, name)) for name, servers in DAEMONS.items() if server in servers),
    ]
    return "\n".join(sections)


def home_conf(layout: Layout, name: str) -> str:
    """The configuration of ``objectd1`` …: the homes of objects beside an object server."""
    app = {"use": "egg:openstack-sluice#object_home", "state_dir": str(layout.data / name)}
    sections = [
        section("DEFAULT", default(layout, layout.ports[name], 0)),
        section("pipeline:main", {"pipeline": "object-home"}),
        section("app:object-home", {**app, "address": f"{HOST}:{layout.ports[name]}"}),
    ]
    return "\n".join(sections)


def kind_of(server: str) -> str:
    """``object`` of ``object1``."""
    return server.rstrip("0123456789")


def _ours(kind: str, setup: Setup) -> list[str]:
    return ["sluice-storage"] if kind == "object" and cluster_setup.STORAGE in setup.parts else []


def _node(layout: Layout, server: str, setup: Setup) -> Layout:
    return layout.storage_node(server) if setup.storage_agents else layout


def _storage(layout: Layout, setup: Setup) -> Options:
    keys = {"key_file": str(layout.key_file)} if cluster_setup.KEYS in setup.parts else {}
    node = {"agent_socket": str(layout.agent_socket), "snapshot_dir": str(layout.snapshots)}
    return {"use": "egg:openstack-sluice#storage", **node, **keys, **code_host_options(layout)}


def _default(layout: Layout, server: str, setup: Setup) -> Options:
    kind = kind_of(server)
    options = default(layout, layout.ports[server], setup.storage_workers if kind == "object" else 0)
    options |= {
        "bind_ip": layout.address(server),
        "devices": str(layout.devices / (server if kind == "object" else "databases")),
        "mount_check": "false",
        "recon_cache_path": str(layout.recon / server),
    }
    if kind == "object":
        options |= {"fallocate_reserve": "0", "disable_fallocate": str(not setup.fallocate).lower()}
        if setup.parts:
            node = _node(layout, server, setup)
            options["sluice_agent_socket"] = str(node.agent_socket)
            options["sluice_snapshot_dir"] = str(node.snapshots)
            options |= code_host_options(layout, "sluice_")
        if cluster_setup.HOMES in setup.parts:
            daemon = next(name for name, beside in OBJECT_HOMES.items() if beside == server)
            options["sluice_objectd"] = f"{HOST}:{layout.ports[daemon]}"
        if cluster_setup.KEYS in setup.parts:
            options["sluice_key_file"] = str(layout.key_file)
        options |= setup.storage_options
    return options


def _daemon(layout: Layout, name: str) -> Options:
    options: dict[str, str] = {}
    if name in WITH_RSYNC:
        # a module per server, for all of its daemons
        options["rsync_module"] = f"rsync://{HOST}:{layout.ports['rsync']}/{name.split('-')[0]}{{replication_port}}"
    if name == "container-sharder":
        options |= _SHARDER
    if name in ("container-sharder", "container-sync"):
        options["internal_client_conf_path"] = str(layout.swift_dir / "internal-client.conf")
    return options


def rsync_conf(layout: Layout) -> str:
    """rsyncd.conf: the devices of each server as one module, named by its port."""
    servers = {"account": "databases", "container": "databases", **{name: name for name in OBJECT_DEVICES}}
    lines = ["use chroot = no", f"log file = {layout.logs / 'rsync.log'}", "max connections = 20", ""]
    for server, folder in servers.items():
        options = {
            "path": str(layout.devices / folder),
            "read only": "false",
            "lock file": str(layout.run / f"rsync-{server}.lock"),
            # rsync of root would change to the user nobody
            "uid": default(layout, 0, 0)["user"],
            "gid": "*",
        }
        lines.append(section(f"{kind_of(server)}{layout.ports[server]}", options))
    return "\n".join(lines)


def client_conf(layout: Layout, name: str, setup: Setup) -> str:
    """``expirer``, ``reconciler`` and ``internal-client``: a proxy inside a daemon.

    container-sync sends the data that it reads with it to another cluster, so it must return the clients' view; the
    others move and delete stored data in their stored form.
    """
    parts = setup.parts if name == "internal-client" else frozenset()
    setup = replace(setup, parts=parts - {cluster_setup.CACHE})  # it only reads, and each object once
    names = ["catch_errors", "cache", *(["sluice"] if cluster_setup.PROXY in parts else []), "proxy-server"]
    general = {key: value for key, value in default(layout, 0, 0).items() if key not in ("bind_ip", "bind_port")}
    sections = [
        section("DEFAULT", {**general, "recon_cache_path": str(layout.recon / name)}),
        section("pipeline:main", {"pipeline": " ".join(names)}),
        section("app:proxy-server", {"use": "egg:swift#proxy", "account_autocreate": "true"}),
        *(section(f"filter:{one}", proxy_filter(layout, setup, one)) for one in names[:-1]),
        *(section(daemon, {}) for daemon, confs in DAEMONS.items() if name in confs),
    ]
    return "\n".join(sections)
