"""The door to a Docker engine's API."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Final

import docker
from docker.errors import DockerException

from sluice_core.errors import PeerError

#: Of Docker 20.10, the oldest that has all that containers here are given.
API: Final = "1.41"
_UNIX: Final = "unix://"


@contextmanager
def docker_client(engine: str, timeout: float = 30.0) -> Iterator[docker.DockerClient]:
    """A client of the engine at the URL ``engine``, for some calls that take at most ``timeout`` seconds each.

    :raises PeerError: when nobody is there, and for whatever the engine refuses in the block
    """
    try:
        if engine.startswith(_UNIX):  # asked first: the client leaks its socket when nobody is there
            with socket.socket(socket.AF_UNIX) as probe:
                probe.connect(engine.removeprefix(_UNIX))
        with closing(docker.DockerClient(base_url=engine, version=API, timeout=timeout)) as client:
            yield client
    except (DockerException, OSError) as error:  # no connection is an OSError
        raise PeerError(f"engine at `{engine}`: {error}") from error
