"""The ``sluice`` command line as an operator of a cluster starts it."""

from __future__ import annotations

import sys
from pathlib import Path

from sluice_aio.cluster.cluster import Cluster


def command_line(cluster: Cluster, folder: Path) -> list[str]:
    """The program and its options, to which the words of a command are added.

    :param folder: private, for the file with the token
    """
    token = folder / "token"
    token.touch(mode=0o600)
    token.write_text(cluster.token, encoding="utf-8")
    return [sys.executable, "-m", "sluice_client", "--url", cluster.api_url, "--token-file", str(token)]
