"""The client of a Docker engine's API."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Final

import docker
from docker.errors import DockerException

from sluice_core.errors import PeerError

#: The version of Docker 20.10, the oldest with all settings of the containers here.
API: Final = "1.41"
_UNIX: Final = "unix://"


@contextmanager
def docker_client(engine: str, timeout: float = 30.0) -> Iterator[docker.DockerClient]:
    """Yield a client of the engine at the URL ``engine``; each call takes at most ``timeout`` seconds.

    :raises PeerError: when no engine answers, and for every error of the engine in the block
    """
    try:
        if engine.startswith(_UNIX):  # checked first: the client leaks its socket when no engine listens
            with socket.socket(socket.AF_UNIX) as probe:
                probe.connect(engine.removeprefix(_UNIX))
        with closing(docker.DockerClient(base_url=engine, version=API, timeout=timeout)) as client:
            yield client
    except (DockerException, OSError) as error:  # no connection is an OSError
        raise PeerError(f"engine at `{engine}`: {error}") from error
