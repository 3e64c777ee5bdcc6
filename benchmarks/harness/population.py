"""Assignments that fill a snapshot, for tenants, containers and objects without requests."""

from __future__ import annotations

from collections.abc import Iterator

from sluice_core.messages.policies import Assignment
from sluice_core.messages.predicate import Predicate
from sluice_core.testing import assignment

#: Half of these assignments have conditions on the request.
CONDITION: Predicate = ["and", ["size", ">", 4096], ["type", ["log", "txt", "text/*"]]]


def strangers(count: int) -> Iterator[Assignment]:
    """``count`` assignments: one in ten for a tenant, three for a container, six for an object."""
    for number in range(count):
        account = f"AUTH_{number % 5000:032x}"
        kind = number % 10
        if kind == 0:
            path = f"AUTH_stranger{number:024x}"
        elif kind < 4:
            path = f"{account}/container-{number}"
        else:
            path = f"{account}/container-{number % 50}/folder/object-{number}.log"
        yield assignment(
            f"stranger{number}.0",
            path,
            keyword="compression",
            params={"engine": "zstd"},
            when=CONDITION if number % 2 else True,
            created=number,
            stage=300,
        )
