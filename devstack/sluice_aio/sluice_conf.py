"""The configuration of our own processes: agent, actor host, API and its token."""

from __future__ import annotations

import os
import secrets
from pathlib import Path
from typing import Final

from sluice_aio.cluster_setup import CACHE, Setup
from sluice_aio.layout import HOST, Layout
from sluice_filters.keys_file import SECRET_SIZE, Ring, render_ring

_AGENT: Final = """\
[agent]
node = {node}
redis_url = {redis}
amqp_url = {amqp}
socket = {socket}
snapshot_dir = {snapshots}
cache_dir = {cache}
storage_daemons = {daemons}
"""

_ACTORS: Final = """\
[actors]
host = {node}
redis_url = {redis}
amqp_url = {amqp}
"""

_API: Final = """\
[api]
bind = {bind}
redis_url = {redis}
token_file = {token_file}
"""


def ensure_token(layout: Layout) -> str:
    """The admin token; made at the first call, readable by its owner only."""
    return _kept(layout.token_file, (secrets.token_urlsafe(24) + "\n").encode()).decode("ascii").strip()


def ensure_keys(layout: Layout) -> None:
    """The key file; made at the first call with one key in it, readable by its owner only."""
    _kept(layout.key_file, render_ring(Ring("aio", {"aio": secrets.token_bytes(SECRET_SIZE)})))


def _kept(path: Path, content: bytes) -> bytes:
    """What the file holds; ``content`` when there was none."""
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        return path.read_bytes()
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
    return content


def write_sluice(layout: Layout, redis_url: str, amqp_url: str, setup: Setup | None = None) -> None:
    """agent.conf, that of a second node's agent, actors.conf, api.conf, the token and the key file."""
    layout.configs.mkdir(parents=True, exist_ok=True)
    ensure_token(layout)
    ensure_keys(layout)
    caching = CACHE in (Setup() if setup is None else setup).parts
    for name, template in {"agent": _AGENT, "agent2": _AGENT, "actors": _ACTORS, "api": _API}.items():
        node = layout.second_node() if name == "agent2" else layout
        values = {
            "node": node.node,
            "redis": redis_url,
            "amqp": amqp_url,
            "socket": node.agent_socket,
            "snapshots": node.snapshots,
            "cache": node.cache if caching else "",
            # Swift's daemons are no services here, unless a test makes them; they would say hello themselves
            "daemons": "" if node.second else "object-server",
            "bind": f"{HOST}:{layout.ports['api']}",
            "token_file": layout.token_file,
        }
        (layout.configs / f"{name}.conf").write_text(template.format(**values), encoding="utf-8")
