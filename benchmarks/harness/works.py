"""The requests of blocks; each checks its answer."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from benchmarks.harness.blocks import Work

from sluice_aio.base.swift_http import SwiftHttp, SwiftResponse
from sluice_core.errors import PeerError


def expect(answer: SwiftResponse, status: int, size: int | None = None) -> None:
    """Refuse any other answer.

    :raises PeerError: with status and size
    """
    if answer.status != status or (size is not None and len(answer.body) != size):
        raise PeerError(f"status {answer.status} with {len(answer.body)} bytes, expected {status} with {size}")


def make_container(client: SwiftHttp, name: str) -> None:
    """Create a container."""
    answer = client.request("PUT", name)
    if answer.status not in (201, 202):
        raise PeerError(f"container `{name}`: status {answer.status}")


def put_all(client: SwiftHttp, paths: Iterable[str], data: bytes) -> None:
    """Upload ``data`` under every one of ``paths``."""
    for path in paths:
        expect(client.request("PUT", path, data), 201)


def getting(paths: Sequence[str], size: int) -> Work:
    """GETs of ``paths`` in turn."""

    def work(client: SwiftHttp, number: int) -> None:
        expect(client.request("GET", paths[number % len(paths)]), 200, size)

    return work


def putting(container: str, names: int, data: bytes, content_type: str = "application/octet-stream") -> Work:
    """PUTs of ``data`` under so many names in turn."""

    def work(client: SwiftHttp, number: int) -> None:
        expect(client.request("PUT", f"{container}/put-{number % names}", data, content_type=content_type), 201)

    return work


def ranging(path: str, starts: Sequence[int], length: int) -> Work:
    """GETs of ``length`` bytes of one object, at ``starts`` in turn."""

    def work(client: SwiftHttp, number: int) -> None:
        first = starts[number % len(starts)]
        expect(client.request("GET", path, range=f"bytes={first}-{first + length - 1}"), 206, length)

    return work
