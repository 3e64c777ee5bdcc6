"""The configuration of Sluice's processes: agent, actor host, API and its token."""

from __future__ import annotations

import secrets
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from sluice_aio.base.files import ensure_secret, section
from sluice_aio.base.layout import CODE_USER, OBJECT_DEVICES, STORAGE_AGENTS, Layout, code_store_options
from sluice_aio.base.ports import HOST
from sluice_aio.base.setup import CACHE, KEYSTONE, PROXY, USAGE, Setup
from sluice_aio.conf.proxy import OPERATOR_ROLES, motifs_conf, rewriter_conf
from sluice_aio.keystone import seed
from sluice_filters.encryption.keys.key_file import SECRET_SIZE, render_ring
from sluice_filters.encryption.keys.ring import Ring

_AGENT: Final = """\
[agent]
node = {node}
redis_url = {redis}
amqp_url = {amqp}
socket = {socket}
snapshot_dir = {snapshots}
cache_dir = {cache}
storage_daemons = {daemons}
storage_confs = {confs}
usage_period = 5
code_dir = {code}
swift_python = {python}
sandbox_dir = {sandbox}
storlets_engine = {engine}
wasm = true
"""

_ACTORS: Final = """\
[actors]
host = {node}
redis_url = {redis}
amqp_url = {amqp}
code_dir = {code}
"""

_API: Final = """\
[api]
bind = {bind}
redis_url = {redis}
token_file = {token_file}
auth = {auth}
erasure_coded = *
"""


def ensure_token(layout: Layout) -> str:
    """The admin token; generated at the first call, readable by its owner only."""
    return ensure_secret(layout.token_file, (secrets.token_urlsafe(24) + "\n").encode()).decode("ascii").strip()


def ensure_keys(layout: Layout) -> None:
    """The key files of objects and volumes; generated at the first call with one key each, mode 0600."""
    for path in (layout.key_file, layout.volume_key_file):
        ensure_secret(path, render_ring(Ring("aio", {"aio": secrets.token_bytes(SECRET_SIZE)})))


def write_sluice(
    layout: Layout, redis_url: str, amqp_url: str, setup: Setup | None = None, cinder: bool = False
) -> None:
    """Write the configuration of all Sluice processes, those of a second node too, token and key file.

    :param cinder: whether there is a Cinder, which the API and actor hosts call, and which notifies the broker
    """
    layout.configs.mkdir(parents=True, exist_ok=True)
    ensure_token(layout)
    ensure_keys(layout)
    setup = Setup() if setup is None else setup
    with_disks = STORAGE_AGENTS if setup.storage_agents else ("agent",)
    caching = CACHE in setup.parts
    # code is stored behind the proxy, if there is one that runs it
    code_store = _lines(code_store_options(layout, keystone=setup.auth == KEYSTONE)) if PROXY in setup.parts else ""
    agents = dict.fromkeys(("agent", "agent2", *(STORAGE_AGENTS if setup.storage_agents else ())), _AGENT)
    for name, template in {**agents, "actors": _ACTORS, "api": _API, "api2": _API}.items():
        node = layout.node_of(name) if name in agents else layout
        values = {
            "node": node.node,
            "redis": redis_url,
            "amqp": amqp_url,
            "socket": node.agent_socket,
            "snapshots": node.snapshots,
            "cache": node.cache if caching and name not in STORAGE_AGENTS else "",
            # Swift's daemons are not services here, unless a test starts them; they would say hello themselves
            "daemons": "object-server" if name in with_disks else "",
            "confs": _storage_confs(layout, name, setup),
            "bind": f"{HOST}:{layout.ports.get(name, 0)}",
            "token_file": layout.token_file,
            "code": node.code,
            "python": sys.executable,
            "sandbox": node.sandbox if setup.sandbox else "",
            "engine": setup.proxy_options.get("storlets_engine", ""),
            "auth": "keystone" if setup.auth == KEYSTONE else "token",
        }
        text = template.format(**values) + code_store + _lines(setup.agent_options.get(name, {}))
        if template is _ACTORS and cinder:
            text += _lines({"cinder_amqp_url": amqp_url})
        if cinder and template in (_ACTORS, _API):
            text += _lines(seed.cinder_options(layout))
        if template is _API:
            text += _lines({"volume_key_file": str(layout.volume_key_file)} if cinder else {})
            text += _lines(_swift(layout, setup)) + _lines(setup.api_options) + _authtoken(layout, setup)
        _write_secret(layout.configs / f"{name}.conf", text)  # the API's file may hold a password
    for suffix, node in (("", layout), ("2", layout.second_node())):
        _write_secret(layout.configs / f"rewriter{suffix}.conf", rewriter_conf(node, redis_url, setup))
        _write_secret(layout.configs / f"motifs{suffix}.conf", motifs_conf(node, redis_url, setup))


def _write_secret(path: Path, text: str) -> None:
    path.touch(mode=0o600)
    path.write_text(text, encoding="utf-8")


def _storage_confs(layout: Layout, agent: str, setup: Setup) -> str:
    """The configurations of the servers whose devices ``agent`` measures: those of its node."""
    if USAGE not in setup.parts:
        return ""
    servers = {"agent": ("account", *(() if setup.storage_agents else OBJECT_DEVICES))}
    if setup.storage_agents:
        servers |= {name: (name.removeprefix("agent-"),) for name in STORAGE_AGENTS}
    return ", ".join(str(layout.swift_dir / f"{server}.conf") for server in servers.get(agent, ()))


def _swift(layout: Layout, setup: Setup) -> Mapping[str, str]:
    """The API's access to Swift, and its user."""
    if PROXY not in setup.parts:
        return {}
    url = {"swift_url": f"http://{HOST}:{layout.ports['proxy']}", "swift_dir": str(layout.swift_dir)}
    if setup.auth == KEYSTONE:
        return {**url, "operator_roles": OPERATOR_ROLES}
    return {**url, "swift_user": CODE_USER, "swift_key_file": str(layout.code_key_file)}


def _lines(options: Mapping[str, str]) -> str:
    return "".join(f"{name} = {value}\n" for name, value in options.items())


def _authtoken(layout: Layout, setup: Setup) -> str:
    if setup.auth != KEYSTONE:
        return ""
    return "\n" + section("keystone_authtoken", seed.authtoken(layout, "sluice"))
