"""The configuration of Swift: one proxy (and its plain twin), account, container, three object servers."""

from __future__ import annotations

import getpass
import secrets
from typing import Final

from sluice_aio.layout import DATABASE_DEVICES, HOST, OBJECT_DEVICES, Layout

#: tempauth user → (key, account); both are administrators of their account.
USERS: Final = {"test:tester": ("testing", "AUTH_test"), "test2:tester2": ("testing2", "AUTH_test2")}

_LEFT: Final = "catch_errors gatekeeper healthcheck proxy-logging cache listing_formats bulk tempurl tempauth"
#: Where encryption stands, stands Sluice: right of everything that makes requests of its own.
_RIGHT: Final = "copy container-quotas account-quotas slo dlo versioned_writes symlink"

_SWIFT: Final = """\
[swift-hash]
swift_hash_path_suffix = {suffix}
"""

_COMMON: Final = """\
[DEFAULT]
bind_ip = {host}
bind_port = {port}
user = {user}
swift_dir = {swift_dir}
log_level = INFO
workers = {workers}
"""

_PROXY: Final = """\
[pipeline:main]
pipeline = {pipeline}

[app:proxy-server]
use = egg:swift#proxy
account_autocreate = true
allow_account_management = true

[filter:catch_errors]
use = egg:swift#catch_errors

[filter:gatekeeper]
use = egg:swift#gatekeeper

[filter:healthcheck]
use = egg:swift#healthcheck

[filter:proxy-logging]
use = egg:swift#proxy_logging

[filter:cache]
use = egg:swift#memcache
memcache_servers = {host}:{memcached}

[filter:listing_formats]
use = egg:swift#listing_formats

[filter:bulk]
use = egg:swift#bulk

[filter:tempurl]
use = egg:swift#tempurl

[filter:tempauth]
use = egg:swift#tempauth
{users}

[filter:copy]
use = egg:swift#copy

[filter:container-quotas]
use = egg:swift#container_quotas

[filter:account-quotas]
use = egg:swift#account_quotas

[filter:slo]
use = egg:swift#slo

[filter:dlo]
use = egg:swift#dlo

[filter:versioned_writes]
use = egg:swift#versioned_writes
allow_versioned_writes = true
allow_object_versioning = true

[filter:symlink]
use = egg:swift#symlink
"""

_SLUICE: Final = """
[filter:sluice]
use = egg:sluice#proxy
agent_socket = {agent_socket}
snapshot_dir = {snapshot_dir}
"""

_STORAGE: Final = """\
devices = {devices}
mount_check = false
fallocate_reserve = 0

[pipeline:main]
pipeline = healthcheck {kind}-server

[app:{kind}-server]
use = egg:swift#{kind}

[filter:healthcheck]
use = egg:swift#healthcheck

[{kind}-replicator]

[{kind}-auditor]

[{kind}-updater]
"""


def _common(layout: Layout, server: str, workers: int) -> str:
    return _COMMON.format(
        host=HOST,
        port=layout.ports[server],
        user=getpass.getuser(),
        swift_dir=layout.swift_dir,
        workers=workers,
    )


def proxy_conf(layout: Layout, plain: bool, workers: int = 2) -> str:
    """proxy-server.conf; ``plain`` is the same pipeline without Sluice, on its own port."""
    pipeline = f"{_LEFT} {_RIGHT} {'' if plain else 'sluice '}proxy-logging proxy-server"
    users = [f"user_{user.replace(':', '_')} = {key} .admin" for user, (key, _) in USERS.items()]
    text = _common(layout, "plain" if plain else "proxy", workers) + "\n"
    text += _PROXY.format(pipeline=pipeline, host=HOST, memcached=layout.ports["memcached"], users="\n".join(users))
    if not plain:
        text += _SLUICE.format(agent_socket=layout.agent_socket, snapshot_dir=layout.snapshots)
    return text


def storage_conf(layout: Layout, server: str) -> str:
    """The configuration of ``account``, ``container``, ``object1`` …: one process without workers."""
    kind = server.rstrip("0123456789")
    devices = layout.devices / (server if kind == "object" else "databases")
    return _common(layout, server, 0) + _STORAGE.format(devices=devices, kind=kind)


def write_swift(layout: Layout) -> None:
    """Everything in the Swift folder but the rings, and the device folders."""
    layout.swift_dir.mkdir(parents=True, exist_ok=True)
    main = layout.swift_dir / "swift.conf"
    if not main.exists():  # another suffix would hide what is stored already
        main.write_text(_SWIFT.format(suffix=secrets.token_hex(8)), encoding="utf-8")
    texts = {"proxy": proxy_conf(layout, plain=False), "plain": proxy_conf(layout, plain=True)}
    texts |= {server: storage_conf(layout, server) for server in ("account", "container", *OBJECT_DEVICES)}
    for server, text in texts.items():
        (layout.swift_dir / f"{server}.conf").write_text(text, encoding="utf-8")
    for folder in [layout.devices / "databases" / device for device in DATABASE_DEVICES]:
        folder.mkdir(parents=True, exist_ok=True)
    for server in OBJECT_DEVICES:
        layout.device(server).mkdir(parents=True, exist_ok=True)
