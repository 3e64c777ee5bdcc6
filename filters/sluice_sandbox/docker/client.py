"""The door to a Docker engine's API."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import docker

#: Of Docker 20.10, the oldest that has all that containers here are given.
API: Final = "1.41"
_UNIX: Final = "unix://"


@contextmanager
def docker_client(engine: str, timeout: float = 30.0) -> Iterator[docker.DockerClient]:
    """A client of the engine at the URL ``engine``, for some calls.

    :raises OSError: when nobody is there
    :raises docker.errors.DockerException: for whatever the engine refuses
    """
    if engine.startswith(_UNIX):  # asked first: the client leaks its socket when nobody is there
        with socket.socket(socket.AF_UNIX) as probe:
            probe.connect(engine.removeprefix(_UNIX))
    client = docker.DockerClient(base_url=engine, version=API, timeout=timeout)
    try:
        yield client
    finally:
        client.close()
