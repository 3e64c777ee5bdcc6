"""Following a policy until every node enforces it.

The controller is asked again and again, with pauses that grow while nothing changes and are short
again when something did.  That it is away for a moment ends nothing: the pauses go on growing.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from sluice_client.client import Client
from sluice_client.columns import Data, plain
from sluice_client.errors import ApiError, ClientError, Unreachable
from sluice_client.resources import enforced

_SHORTEST: Final = 0.2
_LONGEST: Final = 3.0
_GROWTH: Final = 1.5


class NotEnforced(ClientError):
    """A policy failed, was refused, or was not enforced by every node in time."""


@dataclass(frozen=True, slots=True)
class Watch:
    """How to watch: ``say`` gets a line for each change, ``timeout`` None watches for ever."""

    say: Callable[[str], object]
    timeout: float | None = None
    clock: Callable[[], float] = field(default=time.monotonic)
    pause: Callable[[float], object] = field(default=time.sleep)

    def until_enforced(self, client: Client, policy_id: str) -> Data:
        """The policy, once every node enforces it.

        :raises NotEnforced: when that will not be, or not in time
        """
        deadline = None if self.timeout is None else self.clock() + self.timeout
        pause, said, policy, trouble = _SHORTEST, "", None, ""
        while True:
            policy, trouble = self._look(client, policy_id, policy)
            line = trouble or describe(policy)
            if line != said:
                self.say(line)
                said, pause = line, _SHORTEST
            if policy is not None and not trouble and settled(policy):
                return policy
            rest = _LONGEST if deadline is None else deadline - self.clock()
            if rest <= 0:
                raise NotEnforced(
                    f"policy `{policy_id}` is not enforced after {self.timeout:g} s: {trouble or _left(policy)}"
                )
            self.pause(min(pause, rest))
            pause = min(pause * _GROWTH, _LONGEST)

    @staticmethod
    def _look(client: Client, policy_id: str, before: Data | None) -> tuple[Data | None, str]:
        """The policy as it is now, or as it was ``before`` and why it could not be read."""
        try:
            return client.policy(policy_id), ""
        except Unreachable as error:
            return before, str(error)
        except ApiError as error:
            if error.status != 503:
                raise
            return before, error.message


def describe(policy: Data | None) -> str:
    """Where a policy stands, in a line."""
    return f"{policy['state']}, enforced {enforced(policy)}" if policy else ""


def settled(policy: Data) -> bool:
    """Whether every node enforces it.

    :raises NotEnforced: when it failed, or a node refuses it
    """
    if policy["state"] == "failed":
        raise NotEnforced(f"policy `{policy['id']}` failed: {plain(policy['reason'])}")
    refused = policy["enforced"]["refused"]
    if refused:
        reasons = "; ".join(plain(f"{one['node']}: {one['reason']}") for one in refused)
        raise NotEnforced(f"policy `{policy['id']}` is refused by {reasons}")
    # without any node nothing is enforced, however complete that looks
    total: int = policy["enforced"]["total"]
    return bool(policy["state"] == "active" and 0 < total == policy["enforced"]["nodes"])


def _left(policy: Data | None) -> str:
    """What it still waits for."""
    if policy is None:
        return "it could not be read"
    named = {name: ", ".join(policy["enforced"][name]) for name in ("waiting", "away")}
    found = [f"{name}: {nodes}" for name, nodes in named.items() if nodes]
    if policy["enforced"]["total"] == 0:
        found.append("no node has reported")
    if policy["state"] != "active":
        found.append("no actor has taken it")
    return plain("; ".join(found) or describe(policy))
