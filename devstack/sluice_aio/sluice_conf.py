"""The configuration of our own processes: agent, actor host, API and its token."""

from __future__ import annotations

import secrets
from typing import Final

from sluice_aio import code_conf
from sluice_aio.cluster_setup import CACHE, PROXY, Setup
from sluice_aio.kept import kept
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
code_dir = {code}
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
erasure_coded = *
"""


def ensure_token(layout: Layout) -> str:
    """The admin token; made at the first call, readable by its owner only."""
    return kept(layout.token_file, (secrets.token_urlsafe(24) + "\n").encode()).decode("ascii").strip()


def ensure_keys(layout: Layout) -> None:
    """The key file; made at the first call with one key in it, readable by its owner only."""
    kept(layout.key_file, render_ring(Ring("aio", {"aio": secrets.token_bytes(SECRET_SIZE)})))


def write_sluice(layout: Layout, redis_url: str, amqp_url: str, setup: Setup | None = None) -> None:
    """agent.conf, that of a second node's agent, actors.conf, api.conf, the token and the key file."""
    layout.configs.mkdir(parents=True, exist_ok=True)
    ensure_token(layout)
    ensure_keys(layout)
    parts = (Setup() if setup is None else setup).parts
    caching = CACHE in parts
    # code lies behind the proxy, if there is one that runs it
    shelf = "".join(f"{name} = {value}\n" for name, value in code_conf.shelf(layout).items()) if PROXY in parts else ""
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
            "code": node.code,
        }
        text = template.format(**values) + (shelf if name != "actors" else "")
        (layout.configs / f"{name}.conf").write_text(text, encoding="utf-8")
