"""The configuration of our own processes: agent, actor host, API and its token."""

from __future__ import annotations

import os
import secrets
from typing import Final

from sluice_aio.layout import HOST, Layout

_AGENT: Final = """\
[agent]
node = {node}
redis_url = {redis}
amqp_url = {amqp}
socket = {socket}
snapshot_dir = {snapshots}
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
    try:
        descriptor = os.open(layout.token_file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        return layout.token_file.read_text(encoding="ascii").strip()
    token = secrets.token_urlsafe(24)
    with os.fdopen(descriptor, "w", encoding="ascii") as file:
        file.write(token + "\n")
    return token


def write_sluice(layout: Layout, redis_url: str, amqp_url: str) -> None:
    """agent.conf, actors.conf, api.conf and the token."""
    layout.configs.mkdir(parents=True, exist_ok=True)
    ensure_token(layout)
    values = {
        "node": layout.node,
        "redis": redis_url,
        "amqp": amqp_url,
        "socket": layout.agent_socket,
        "snapshots": layout.snapshots,
        "bind": f"{HOST}:{layout.ports['api']}",
        "token_file": layout.token_file,
    }
    for name, template in {"agent": _AGENT, "actors": _ACTORS, "api": _API}.items():
        (layout.configs / f"{name}.conf").write_text(template.format(**values), encoding="utf-8")
