"""Waits until the services of a cluster serve, and until the whole cluster is healthy."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

from sluice_aio.base.server import Server
from sluice_aio.errors import LaunchError
from sluice_client import Client, ClientError

#: Seconds until a service must serve.
START_LIMIT: Final = 90.0


def wait_until_serving(servers: Mapping[str, Server], say: Callable[[str], None]) -> None:
    """Wait for each server.

    :raises PeerError: if one does not serve in time
    :raises LaunchError: if one ended after it served
    """
    say(f"waiting for {', '.join(servers)}")
    for server in servers.values():
        server.wait_ready(START_LIMIT)
    _refuse_dead(servers)


def wait_until_healthy(api_url: str, servers: Mapping[str, Server], say: Callable[[str], None]) -> None:
    """Wait until the API reports that all its dependencies are well; return at once without all of Sluice.

    :raises LaunchError: if a service ended, or the cluster is not healthy in time
    """
    if not {"redis", "rabbit", "agent", "actors", "api"} <= servers.keys():
        return
    say("waiting for agent and actors to report")
    deadline = time.monotonic() + START_LIMIT
    with Client(api_url) as client:
        while (health := _health(client))["status"] != "ok":
            _refuse_dead(servers)
            if time.monotonic() > deadline:
                raise LaunchError(f"the cluster is not well after {START_LIMIT:g} s: {health}")
            time.sleep(0.05)


def _refuse_dead(servers: Mapping[str, Server]) -> None:
    for name, server in servers.items():
        if not server.running:
            raise LaunchError(f"{name} ended: {_tail(server.log)}")


def _health(client: Client) -> Mapping[str, Any]:
    try:
        return client.health()
    except ClientError as error:
        return {"status": str(error)}


def _tail(log: Path, lines: int = 15) -> str:
    """The last lines of a log file."""
    text = log.read_text(encoding="utf-8", errors="replace") if log.exists() else ""
    return "\n".join(["", *(f"    {line}" for line in text.splitlines()[-lines:])])
