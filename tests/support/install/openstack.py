"""What the installation guide takes for granted: Keystone, Cinder, Horizon, a Swift of a proxy and storage nodes."""

from __future__ import annotations

import json
import secrets
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from swift.common.ring import RingBuilder
from tests.support.hosts.lab import ADDRESSES, Host, Lab, write_file
from tests.support.install import horizon, volumes_service

from sluice_aio.keystone import venv
from sluice_aio.keystone.keystone_program import PROJECTS

CLONE: Final = Path(__file__).resolve().parents[3]
#: Devices of each storage node.
DEVICES: Final = ("sdb1", "sdc1")
_PORTS: Final = {"object": 6200, "container": 6201, "account": 6202}
#: Ring → the servers that it names, and in how many places there is what it leads to.
RINGS: Final = {
    "object": ("object", 3),
    "object-1": ("object", 4),
    "container": ("container", 3),
    "account": ("account", 3),
}
_SWIFT_CONF: Final = """\
[swift-hash]
swift_hash_path_suffix = {hash}

[storage-policy:0]
name = gold
default = yes

[storage-policy:1]
name = silver
policy_type = erasure_coding
ec_type = liberasurecode_rs_vand
ec_num_data_fragments = 2
ec_num_parity_fragments = 2
"""
_PIPELINE: Final = (
    "catch_errors gatekeeper healthcheck proxy-logging cache bulk tempurl authtoken keystoneauth copy container-quotas "
    "account-quotas slo dlo versioned_writes symlink proxy-logging proxy-server"
)
_AUTHTOKEN: Final = """\
[filter:authtoken]
paste.filter_factory = keystonemiddleware.auth_token:filter_factory
www_authenticate_uri = http://controller:5000/v3
auth_url = http://controller:5000/v3
auth_type = password
username = swift
password = {password}
project_name = service
user_domain_id = default
project_domain_id = default
delay_auth_decision = true
cache = swift.cache
"""
_RSYNC: Final = "uid = swift\ngid = swift\nuse chroot = no\n" + "".join(
    f"[{kind}]\npath = /srv/node\nread only = false\nlock file = /run/{kind}.lock\n" for kind in _PORTS
)
_INTERNAL_CLIENT: Final = """\
[DEFAULT]
[pipeline:main]
pipeline = catch_errors proxy-logging cache symlink proxy-server
[app:proxy-server]
use = egg:swift#proxy
account_autocreate = true
[filter:cache]
use = egg:swift#memcache
[filter:proxy-logging]
use = egg:swift#proxy_logging
[filter:catch_errors]
use = egg:swift#catch_errors
[filter:symlink]
use = egg:swift#symlink
"""
#: Daemons of a storage node → their configuration.
STORAGE_DAEMONS: Final = {
    "account-server": "account",
    "account-replicator": "account",
    "container-server": "container",
    "container-replicator": "container",
    "container-updater": "container",
    "object-server": "object",
    "object-replicator": "object",
    "object-reconstructor": "object",
    "object-auditor": "object",
}
_UNIT: Final = """\
[Unit]
Description=Swift {name}
[Service]
Type=notify
User=swift
ExecStart=/opt/swift/bin/swift-{name} /etc/swift/{conf}.conf -v
Restart=on-failure
"""


class OpenStack:
    """:param lab: of its hosts"""

    def __init__(self, lab: Lab) -> None:
        self._lab = lab
        #: A wheel of Sluice to which the cluster is upgraded.
        self.newer_wheel: Path | None = None
        self.admin_password = secrets.token_hex(10)
        self._swift_password = secrets.token_hex(10)
        self._hash = secrets.token_hex(10)

    @property
    def hosts(self) -> dict[str, Host]:
        """Name → host, of the started ones."""
        return self._lab.hosts

    @property
    def wheelhouse(self) -> Path:
        """The folder that is /opt/wheelhouse on all hosts."""
        return self._lab.folder / "wheelhouse"

    def add_host(self, name: str) -> Host:
        """A host with nothing but what Debian's packages bring."""
        return self._lab.add(self._lab.host(name))

    def cut_power(self, name: str) -> None:
        """Lose a host."""
        self._lab.cut_power(name)

    def add_controller(self) -> Host:
        """A host with Keystone, Cinder and Horizon, and with the administrator's environment in /root/admin-openrc."""
        host = self._lab.host("controller")
        program = CLONE / "devstack/sluice_aio/keystone/keystone_program.py"
        command = f"{venv.python()} -I {program} /var/lib/keystone 5000 controller"
        write_file(host, "/etc/systemd/system/keystone.service", f"[Service]\nType=notify\nExecStart={command}\n")
        write_file(host, "/var/lib/keystone/admin.password", self.admin_password)
        write_file(host, f"/var/lib/keystone/{PROJECTS}", "service\ndemo\n")
        write_file(host, "/root/admin-openrc", openrc("admin", self.admin_password, "admin"))
        write_file(host, "/root/demo-openrc", openrc("demo", self.admin_password, "demo"))
        passwords = {"swift": self._swift_password, "cinder": volumes_service.write_cinder(host)}
        horizon.write_horizon(host)
        self._lab.add(host)
        horizon.add_environment(host)
        host.run("systemctl", "start", "keystone")
        script = str(Path(__file__).with_name("seed_keystone.py"))
        host.run(sys.executable, script, self.admin_password, json.dumps(passwords), PYTHONPATH=_python_path())
        host.run("systemctl", "start", "cinder", "horizon")
        return host

    def add_proxy(self, storage: Sequence[str]) -> Host:
        """A host with Swift's proxy server, the ring builders and memcached."""
        host = self._lab.host("proxy1")
        names = list(dict.fromkeys(_PIPELINE.split()[:-1]))
        sections = ["[DEFAULT]\nbind_ip = 0.0.0.0\nbind_port = 8080\nuser = swift\nworkers = 2"]
        sections += [f"[pipeline:main]\npipeline = {_PIPELINE}"]
        sections += ["[app:proxy-server]\nuse = egg:swift#proxy\naccount_autocreate = true"]
        sections += [f"[filter:{one}]\nuse = egg:swift#{_entry(one)}" for one in names if one != "authtoken"]
        text = "\n\n".join(sections).replace(
            "#keystoneauth", "#keystoneauth\noperator_roles = admin, member\nreseller_prefix = AUTH"
        )
        write_file(
            host, "/etc/swift/proxy-server.conf", text + "\n\n" + _AUTHTOKEN.format(password=self._swift_password)
        )
        self._add_swift(host, {"proxy-server": "proxy-server"})
        self._build_rings(host, storage)
        self._lab.add(host)
        host.run("python3", "-m", "venv", "/opt/swift")
        wanted = ("swift", "keystonemiddleware", "python-memcached", "setuptools")
        host.run("/opt/swift/bin/pip", "install", "--quiet", "--no-index", "--find-links", "/opt/wheelhouse", *wanted)
        host.run("chown", "-R", "swift:", "/etc/swift")
        host.run("systemctl", "start", "memcached", "swift-proxy-server")
        return host

    def add_storage(self, name: str) -> Host:
        """A host with account, container and object servers, and the daemons beside them."""
        host = self._lab.host(name)
        for kind, port in _PORTS.items():
            write_file(host, f"/etc/swift/{kind}-server.conf", _storage_conf(kind, port))
        write_file(host, "/etc/swift/internal-client.conf", _INTERNAL_CLIENT)
        write_file(host, "/etc/rsyncd.conf", _RSYNC)
        self._add_swift(host, {daemon: f"{kind}-server" for daemon, kind in STORAGE_DAEMONS.items()})
        proxy = self._lab.hosts["proxy1"]
        shutil.copytree(proxy.folder / "opt" / "swift", host.folder / "opt" / "swift", symlinks=True)
        self._lab.add(host)
        host.run("sh", "-c", "mkdir -p /srv/node/sdb1 /srv/node/sdc1 /var/cache/swift && touch /etc/default/rsync")
        for ring in RINGS:
            content = proxy.run("base64", f"/etc/swift/{ring}.ring.gz")
            ended = host.enter("root", ["sh", "-c", f"base64 -d > /etc/swift/{ring}.ring.gz"], {}, content)
            assert ended.returncode == 0, ended.stdout
        host.run("chown", "-R", "swift:", "/etc/swift", "/srv/node", "/var/cache/swift")
        host.run("systemctl", "start", "rsync", *(f"swift-{daemon}" for daemon in STORAGE_DAEMONS))
        return host

    def _add_swift(self, host: Host, daemons: dict[str, str]) -> None:
        write_file(host, "/etc/swift/swift.conf", _SWIFT_CONF.format(hash=self._hash))
        for name, conf in daemons.items():
            write_file(host, f"/etc/systemd/system/swift-{name}.service", _UNIT.format(name=name, conf=conf))

    def _build_rings(self, host: Host, storage: Sequence[str]) -> None:
        for ring, (kind, places) in RINGS.items():
            builder, port = RingBuilder(6, places, 0), _PORTS[kind]
            for number, (name, device) in enumerate((name, device) for name in storage for device in DEVICES):
                zone = 1 + storage.index(name)
                place = {"ip": ADDRESSES[name], "port": port, "replication_ip": ADDRESSES[name]}
                place |= {"replication_port": port, "device": device}
                builder.add_dev({"id": number, "region": 1, "zone": zone, "weight": 1.0, **place})
            builder.rebalance(seed=1)
            folder = host.folder / "files" / "etc" / "swift"
            builder.save(str(folder / f"{ring}.builder"))
            builder.get_ring().save(str(folder / f"{ring}.ring.gz"))


def environments() -> list[Path]:
    """The folders of virtual environments that hosts need to see."""
    return [venv.python().parents[1], horizon.environment(), volumes_service.environment()]


def _entry(name: str) -> str:
    return {"cache": "memcache"}.get(name, name.replace("-", "_"))


def _storage_conf(kind: str, port: int) -> str:
    default = (
        f"[DEFAULT]\nbind_ip = 0.0.0.0\nbind_port = {port}\nuser = swift\ndevices = /srv/node\nmount_check = false"
    )
    default += "\nworkers = 1\nrecon_cache_path = /var/cache/swift"
    if kind == "object":
        default += "\nfallocate_reserve = 0"
    pipeline = f"[pipeline:main]\npipeline = healthcheck recon {kind}-server"
    app = f"[app:{kind}-server]\nuse = egg:swift#{kind}"
    filters = "\n\n".join(f"[filter:{one}]\nuse = egg:swift#{one}" for one in ("healthcheck", "recon"))
    daemons = "\n\n".join(
        f"[{kind}-{one}]\ninterval = 5" for one in ("replicator", "updater", "auditor", "reconstructor")
    )
    return f"{default}\n\n{pipeline}\n\n{app}\n\n{filters}\n\n{daemons}\n"


def openrc(user: str, password: str, project: str) -> str:
    """A file that a shell reads before `openstack`."""
    values = {
        "AUTH_URL": "http://controller:5000/v3",
        "USERNAME": user,
        "PASSWORD": password,
        "PROJECT_NAME": project,
        "USER_DOMAIN_ID": "default",
        "PROJECT_DOMAIN_ID": "default",
        "IDENTITY_API_VERSION": "3",
        "REGION_NAME": "RegionOne",
    }
    return "".join(f"export OS_{name}={value}\n" for name, value in values.items())


def _python_path() -> str:
    return ":".join(str(CLONE / room) for room in ("devstack", "core"))
