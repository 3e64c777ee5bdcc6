"""The configuration of Cinder: one process, the NBD driver with two pools, NFS for root, Ceph if there is one."""

from __future__ import annotations

import json
import os
import shlex
from pathlib import Path
from typing import Final

from sluice_aio.base.files import section
from sluice_aio.base.layout import Layout
from sluice_aio.base.ports import HOST
from sluice_aio.cinder.backends import NFS_SHARE, export_folder, folder, link_ceph_modules, nfs_mounts
from sluice_aio.errors import LaunchError
from sluice_aio.keystone import seed
from sluice_aio.keystone.http import DOMAIN, KeystoneHttp

SERVICE: Final = "cinder"
#: The default volume type.
DEFAULT_TYPE: Final = "standard"
#: Seconds between two reports of the pools, Cinder's minimum.
_REPORT: Final = "3"
#: The pools of the NBD back end, as in the driver's option.
_POOLS: Final = (
    "fast sluice:resiliency=none sluice:fabric=nbd sluice:bandwidth=400 sluice:iops=20000",
    "slow capacity=10 sluice:resiliency=none sluice:fabric=nbd sluice:bandwidth=40 sluice:iops=1000",
)
#: The pool of volumes in a Ceph, and the user that reads and writes it.
CEPH_POOL: Final = "volumes"
CEPH_USER: Final = "cinder"
#: Linux refuses unix socket paths of more than 107 bytes; a socket has the name of its volume.
_SOCKET_PATH_LIMIT: Final = 107


def write_cinder(layout: Layout, amqp_url: str, python: Path, ceph_conf: str = "") -> None:
    """cinder.conf, readable by its owner only, and the folders of the back ends.

    :param amqp_url: the cluster's broker, which gets Cinder's notifications
    :param python: the interpreter of Cinder's environment
    :param ceph_conf: the configuration of a Ceph cluster; empty without one
    :raises LaunchError: if the path of an export's socket would be too long, or Ceph's bindings are not installed
    """
    home = folder(layout)
    if len(os.fsencode(export_folder(layout) / ("0" * 36 + ".sock"))) > _SOCKET_PATH_LIMIT:
        raise LaunchError(f"the path of `{layout.folder}` is too long for Cinder's exports in it, use a shorter one")
    for path in (home, home / "nfs", home / "bin", layout.run):
        path.mkdir(parents=True, exist_ok=True)
    mount_nfs = home / "bin" / "mount.nfs"  # the driver queries its version; the share is a bind mount
    if not mount_nfs.exists():
        mount_nfs.symlink_to("/bin/true")
    (home / "nfs_shares").write_text(f"{NFS_SHARE}\n", encoding="ascii")
    backends = ["nbd", *(["nfs"] if os.geteuid() == 0 else []), *(["rbd"] if ceph_conf else [])]
    if ceph_conf:
        link_ceph_modules(layout)
    sections = [
        section("DEFAULT", _general(layout, python, backends)),
        section("database", {"connection": f"sqlite:///{home}/cinder.sqlite"}),
        section("keystone_authtoken", _authtoken(layout)),
        section("oslo_concurrency", {"lock_path": f"{home}/lock"}),
        section("oslo_messaging_notifications", _notifications(amqp_url)),
        section("coordination", {"backend_url": f"file://{home}/coordination"}),
        section("nbd", _nbd(layout)) + "".join(f"sluice_nbd_pool = {pool}\n" for pool in _POOLS),
        section("nfs", _nfs(home, layout)),
        *([section("rbd", _rbd(ceph_conf))] if ceph_conf else []),
        section("cinder_sys_admin", {"helper_command": _privileged(python, home / "cinder.conf")}),
    ]
    path = home / "cinder.conf"
    path.touch(mode=0o600)
    path.write_text("\n".join(sections), encoding="utf-8")


def _general(layout: Layout, python: Path, backends: list[str]) -> dict[str, str]:
    shipped = python.parents[1] / "etc" / "cinder"
    return {
        "host": layout.node,
        "state_path": str(folder(layout)),
        "transport_url": "fake://",
        "auth_strategy": "keystone",
        "osapi_volume_listen": HOST,
        "osapi_volume_listen_port": str(layout.ports[SERVICE]),
        "osapi_volume_workers": "1",
        "api_paste_config": f"{shipped}/api-paste.ini",
        "resource_query_filters_file": f"{shipped}/resource_filters.json",
        "enabled_backends": ",".join(backends),
        "default_volume_type": DEFAULT_TYPE,
        "backend_stats_polling_interval": _REPORT,
        "report_interval": _REPORT,
        "periodic_interval": _REPORT,  # interval of periodic tasks
        "scheduler_driver_init_wait_time": "1",
        "periodic_fuzzy_delay": "0",
        # for development: no quotas
        **dict.fromkeys(("quota_volumes", "quota_snapshots", "quota_gigabytes"), "-1"),
        "use_stderr": "true",
    }


def _authtoken(layout: Layout) -> dict[str, str]:
    return seed.authtoken(layout, SERVICE) | {"service_token_roles": "service", "service_token_roles_required": "true"}


def _notifications(amqp_url: str) -> dict[str, str]:
    # this form of URLs does not encode the virtual host
    rabbit = f"rabbit{amqp_url.removeprefix('amqp').removesuffix('%2F')}/"
    # a request does not wait for an unreachable broker
    return {"driver": "messagingv2", "transport_url": rabbit, "topics": "notifications", "retry": "0"}


def _nbd(layout: Layout) -> dict[str, str]:
    return {
        "volume_driver": "sluice_block.cinder_driver.NbdFileDriver",
        "volume_backend_name": "nbd",
        "sluice_nbd_folder": f"{folder(layout)}/nbd",
        "sluice_nbd_export_folder": str(export_folder(layout)),
        "max_over_subscription_ratio": "2.0",
    }


def _rbd(ceph_conf: str) -> dict[str, str]:
    # Cinder's scheduler finds `a:b` of a type's extra specs only as [a][b]
    promised = {"resiliency": "2", "fabric": "rbd"}
    capabilities = {"sluice": promised, **{f"sluice:{name}": value for name, value in promised.items()}}
    return {
        "volume_driver": "cinder.volume.drivers.rbd.RBDDriver",
        "volume_backend_name": "rbd",
        "rbd_ceph_conf": ceph_conf,
        "rbd_pool": CEPH_POOL,
        "rbd_user": CEPH_USER,
        "extra_capabilities": json.dumps(capabilities),
    }


def _privileged(python: Path, config: Path) -> str:
    """The command that snapshots on NFS run as root, which only root starts: without sudo."""
    # the first line of the script of that name has the path of an unfinished environment
    main = "from oslo_privsep.daemon import helper_main; helper_main()"
    return shlex.join([str(python), "-I", "-c", main, "--config-file", str(config)])


def _nfs(home: Path, layout: Layout) -> dict[str, str]:
    return {
        "volume_driver": "cinder.volume.drivers.nfs.NfsDriver",
        "volume_backend_name": "nfs",
        "nfs_shares_config": f"{home}/nfs_shares",
        "nfs_mount_point_base": str(nfs_mounts(layout)),
        "nfs_snapshot_support": "true",
        "nas_secure_file_operations": "false",
        "nas_secure_file_permissions": "false",
    }


def seed_cinder(layout: Layout) -> None:
    """Make Cinder's user, its place in the catalogue and its default volume type; Keystone and Cinder serve.

    :raises PeerError: if one of them refuses
    """
    keystone = KeystoneHttp(layout.keystone_url)
    admin = keystone.login(seed.ADMIN, seed.password(layout, seed.ADMIN), "admin")
    keystone.token = admin.id
    project = keystone.ensure("project", {"name": seed.SERVICE_PROJECT, "domain_id": DOMAIN})
    password = seed.password(layout, SERVICE)
    user = keystone.ensure("user", {"name": SERVICE, "password": password, "domain_id": DOMAIN})
    role = keystone.ensure("role", {"name": "service"})
    keystone.call("PUT", f"/projects/{project}/users/{user}/roles/{role}")
    # Cinder shows pools and the volumes of all projects to administrators only
    ours = keystone.ensure("user", {"name": "sluice", "password": seed.password(layout, "sluice"), "domain_id": DOMAIN})
    admin_role = keystone.ensure("role", {"name": "admin"})
    keystone.call("PUT", f"/projects/{project}/users/{ours}/roles/{admin_role}")
    url = f"{layout.url(SERVICE)}/v3"
    seed.endpoint(keystone, "volumev3", f"{url}/%(project_id)s")
    seed.endpoint(keystone, "block-storage", url)
    cinder = KeystoneHttp(f"{url}/{admin.project_id}", name="cinder")
    cinder.token = admin.id
    types = cinder.call("GET", "/types")["volume_types"]
    if DEFAULT_TYPE not in {one["name"] for one in types}:
        wanted = {"name": DEFAULT_TYPE, "extra_specs": {"volume_backend_name": "nbd"}}
        cinder.call("POST", "/types", {"volume_type": wanted})
