"""Following a policy, or uploaded code, until every node has it.

The controller is asked again and again, with pauses that grow while nothing changes and are short
again when something did.  That it is away for a moment ends nothing: the pauses go on growing.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, Protocol

from sluice_client.errors import ApiError, ClientError, Unreachable
from sluice_client.resources.code import refusal, rolled_out
from sluice_client.resources.columns import Data, plain
from sluice_client.resources.policies import enforced
from sluice_client.rest.client import Client

_SHORTEST: Final = 0.2
_LONGEST: Final = 3.0
_GROWTH: Final = 1.5


class NotEnforced(ClientError):
    """What was followed failed, was refused, or was not on every node in time."""


class Followed(Protocol):
    """Something on its way to all nodes; ``name`` is what it is called, ``goal`` what it will be."""

    name: str
    goal: str

    def look(self) -> Data:
        """What it is now."""

    def line(self, found: Data) -> str:
        """Where it stands."""

    def settled(self, found: Data) -> bool:
        """Whether every node has it.

        :raises NotEnforced: when that will not be
        """

    def left(self, found: Data) -> str:
        """What it still waits for."""


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
        return self.follow(_Policy(client, policy_id))

    def until_rolled_out(self, client: Client, keyword: str) -> Data:
        """The filter, once every node has the newest revision of its code.

        :raises NotEnforced: when that will not be, or not in time
        """
        return self.follow(_Rollout(client, keyword))

    def follow(self, one: Followed) -> Data:
        """What it is when every node has it.

        :raises NotEnforced: when that will not be, or not in time
        """
        deadline = None if self.timeout is None else self.clock() + self.timeout
        pause, said, found, trouble = _SHORTEST, "", None, ""
        while True:
            found, trouble = _look(one, found)
            line = trouble or (one.line(found) if found is not None else "")
            if line != said:
                self.say(line)
                said, pause = line, _SHORTEST
            if found is not None and not trouble and one.settled(found):
                return found
            rest = _LONGEST if deadline is None else deadline - self.clock()
            if rest <= 0:
                left = trouble or ("it could not be read" if found is None else one.left(found))
                raise NotEnforced(f"{one.name} is not {one.goal} after {self.timeout:g} s: {plain(left)}")
            self.pause(min(pause, rest))
            pause = min(pause * _GROWTH, _LONGEST)


def _look(one: Followed, before: Data | None) -> tuple[Data | None, str]:
    """What it is now, or was ``before`` and why it could not be read."""
    try:
        return one.look(), ""
    except Unreachable as error:
        return before, str(error)
    except ApiError as error:
        if error.status != 503:
            raise
        return before, error.message


class _Policy:
    goal = "enforced"

    def __init__(self, client: Client, policy_id: str) -> None:
        self.name = f"policy `{policy_id}`"
        self._client, self._id = client, policy_id

    def look(self) -> Data:
        return self._client.policy(self._id)

    def line(self, found: Data) -> str:
        return f"{found['state']}, enforced {enforced(found)}"

    def settled(self, found: Data) -> bool:
        if found["state"] == "failed":
            raise NotEnforced(f"{self.name} failed: {plain(found['reason'])}")
        refused = found["enforced"]["refused"]
        if refused:
            reasons = "; ".join(plain(f"{one['node']}: {one['reason']}") for one in refused)
            raise NotEnforced(f"{self.name} is refused by {reasons}")
        return bool(found["state"] == "active" and _everywhere(found["enforced"]))

    def left(self, found: Data) -> str:
        told = _missing(found["enforced"])
        if found["state"] != "active":
            told.append("no actor has taken it")
        return "; ".join(told) or self.line(found)


class _Rollout:
    goal = "everywhere"

    def __init__(self, client: Client, keyword: str) -> None:
        self.name = f"filter `{keyword}`"
        self._client, self._keyword = client, keyword

    def look(self) -> Data:
        return self._client.filter(self._keyword)

    def line(self, found: Data) -> str:
        return f"revision {found['revision']} on {rolled_out(found)} nodes"

    def settled(self, found: Data) -> bool:
        if not found["sha256"]:
            raise NotEnforced(f"{self.name} has no code yet, expected some by `filter upload`")
        refused = found["rollout"]["refused"]
        if refused:
            revision = f"revision {found['revision']} of {self.name}"
            raise NotEnforced(f"{revision} is refused: {'; '.join(map(refusal, refused))}")
        return _everywhere(found["rollout"])

    def left(self, found: Data) -> str:
        return "; ".join(_missing(found["rollout"])) or self.line(found)


def _everywhere(nodes: Data) -> bool:
    # without any node nothing is anywhere, however complete that looks
    return bool(0 < nodes["total"] == nodes["nodes"])


def _missing(nodes: Data) -> list[str]:
    named = {name: ", ".join(nodes[name]) for name in ("waiting", "away")}
    found = [f"{name}: {those}" for name, those in named.items() if those]
    return found if nodes["total"] else [*found, "no node has reported"]
