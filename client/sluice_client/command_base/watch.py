"""Polls a policy, or uploaded code, until every node has it; and waits for jobs of the controller.

The pauses between polls grow while nothing changes, and are short again after a change.  A controller that is
unreachable for a moment does not end the watch: the pauses keep growing.
"""

from __future__ import annotations

import math
import time
from abc import ABC, abstractmethod
from argparse import Namespace
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Final, Self, TextIO

from sluice_client.command_base.arguments import Argument, seconds_option
from sluice_client.command_base.command import SluiceCommand
from sluice_client.errors import ApiError, ClientError, Unreachable
from sluice_client.resources.code import refusal, rolled_out
from sluice_client.resources.columns import Data, printable
from sluice_client.resources.policies import enforced
from sluice_client.rest.client import Client

_SHORTEST: Final = 0.2
_LONGEST: Final = 3.0
_GROWTH: Final = 1.5
#: Of a filter that has no roll-out to follow.
INSTALLED: Final = "installed with the software of the nodes, so nothing is rolled out"
#: Seconds before an unreachable controller is polled again.
PAUSE: Final = 1.0
#: Statuses of a service behind the controller that is unreachable for a moment.
_BUSY: Final = 503


def watch_options(text: str) -> tuple[Argument, ...]:
    """Return the options of a command that can watch.

    :param text: the help of ``--watch``
    """
    return (
        Argument("--watch", text, {"action": "store_true"}),
        seconds_option("--timeout", "stop watching after this time, and fail", None),
    )


class NotEnforced(ClientError):
    """The watched policy or code failed, was refused, or did not reach every node in time."""


@dataclass(frozen=True)
class Watched(ABC):
    """A state that all nodes shall reach; ``fetch`` returns it, ``name`` and ``goal`` are for error messages."""

    name: str
    goal: str
    fetch: Callable[[], Data]

    @abstractmethod
    def status_line(self, found: Data) -> str:
        """Its progress, on one line."""

    @abstractmethod
    def is_complete(self, found: Data) -> bool:
        """Whether every node has it.

        :raises NotEnforced: when a node will not have it
        """

    @abstractmethod
    def pending(self, found: Data) -> str:
        """Return what it still waits for."""


@dataclass(frozen=True, slots=True)
class Watch:
    """The parameters of a watch: ``say`` receives a line for each change; ``timeout``: seconds, None without end."""

    say: Callable[[str], object]
    timeout: float | None = None
    clock: Callable[[], float] = field(default=time.monotonic)
    pause: Callable[[float], object] = field(default=time.sleep)

    @classmethod
    def from_options(cls, command: SluiceCommand, args: Namespace) -> Self | None:
        """Return the watch of the options of ``command``; None without one."""
        if args.timeout is not None and not args.watch:
            raise ClientError("`--timeout` is given without `--watch`")
        return cls(command.say, args.timeout) if args.watch else None

    def until_enforced(self, client: Client, policy_id: str) -> Data:
        """Return the policy, once every node enforces it.

        :raises NotEnforced: when a node refuses it, or after the time-out
        """
        return self.follow(_Policy(f"policy `{policy_id}`", "enforced", partial(client.policy, policy_id)))

    def until_rolled_out(self, client: Client, keyword: str) -> Data:
        """Return the filter, once every node has the newest revision of its code.

        :raises NotEnforced: when a node refuses it, or after the time-out
        """
        return self.follow(_Rollout(f"filter `{keyword}`", "everywhere", partial(client.filter, keyword)))

    def follow(self, watched: Watched) -> Data:
        """Return its state, once every node has it.

        :raises NotEnforced: when a node refuses it, or after the time-out
        """
        deadline = None if self.timeout is None else self.clock() + self.timeout
        pause, shown, data, trouble = _SHORTEST, "", None, ""
        while True:
            data, trouble = _fetch_or_previous(watched, data)
            line = trouble or (watched.status_line(data) if data is not None else "")
            if line != shown:
                self.say(line)
                shown, pause = line, _SHORTEST
            if data is not None and not trouble and watched.is_complete(data):
                return data
            remaining = _LONGEST if deadline is None else deadline - self.clock()
            if remaining <= 0:
                pending = trouble or ("it could not be read" if data is None else watched.pending(data))
                raise NotEnforced(
                    f"{watched.name} is not {watched.goal} after {self.timeout:g} s: {printable(pending)}"
                )
            self.pause(min(pause, remaining))
            pause = min(pause * _GROWTH, _LONGEST)


def _fetch_or_previous(watched: Watched, before: Data | None) -> tuple[Data | None, str]:
    """Return the present state; or the state ``before``, and why the present one could not be read."""
    try:
        return watched.fetch(), ""
    except Unreachable as error:
        return before, str(error)
    except ApiError as error:
        if error.status != _BUSY:
            raise
        return before, error.message


class _Policy(Watched):
    def status_line(self, found: Data) -> str:
        return f"{found['state']}, enforced {enforced(found)}"

    def is_complete(self, data: Data) -> bool:
        if data["state"] == "failed":
            raise NotEnforced(f"{self.name} failed: {printable(data['reason'])}")
        refused = data["enforced"]["refused"]
        if refused:
            reasons = "; ".join(printable(f"{one['node']}: {one['reason']}") for one in refused)
            raise NotEnforced(f"{self.name} is refused by {reasons}")
        return bool(data["state"] == "active" and _everywhere(data["enforced"]))

    def pending(self, data: Data) -> str:
        told = _missing(data["enforced"])
        if data["state"] != "active":
            told.append("no actor has taken it")
        return "; ".join(told) or self.status_line(data)


class _Rollout(Watched):
    def status_line(self, found: Data) -> str:
        return f"revision {found['revision']} on {rolled_out(found)} nodes" if found["rollout"] else INSTALLED

    def is_complete(self, data: Data) -> bool:
        if data["rollout"] is None:
            raise NotEnforced(f"{self.name} is {INSTALLED}")
        if not data["sha256"]:
            raise NotEnforced(f"{self.name} has no code yet, expected some by `filter upload`")
        refused = data["rollout"]["refused"]
        if refused:
            revision = f"revision {data['revision']} of {self.name}"
            raise NotEnforced(f"{revision} is refused: {'; '.join(map(refusal, refused))}")
        return _everywhere(data["rollout"])

    def pending(self, found: Data) -> str:
        return "; ".join(_missing(found["rollout"])) or self.status_line(found)


def _everywhere(nodes: Data) -> bool:
    # without any node there is no roll-out, even if the numbers are complete
    return bool(0 < nodes["total"] == nodes["nodes"])


def _missing(nodes: Data) -> list[str]:
    named = {name: ", ".join(nodes[name]) for name in ("waiting", "away")}
    found = [f"{name}: {those}" for name, those in named.items() if those]
    return found if nodes["total"] else [*found, "no node has reported"]


def wait_for_job(
    job: Data,
    fetch: Callable[[], Data],
    has_ended: Callable[[Data], bool],
    line: Callable[[Data], str],
    shown_on: TextIO,
    timeout: float = math.inf,
    seconds: float = 10.0,
    at_once: bool = True,
) -> Data:
    """Return ``job`` when it has ended; a controller that is unreachable for a moment does not end the wait.

    The progress is shown on one line of a terminal, else on a line at intervals.

    :param fetch: returns the present job, possibly after a moment
    :param line: returns the progress as text
    :param timeout: seconds, after which the job continues
    :param seconds: between two lines without a terminal
    :param at_once: whether the first line is printed without this pause
    :raises ClientError: when it has not ended in time
    """
    began = time.monotonic()
    is_terminal, shown = shown_on.isatty(), 0.0 if at_once else began
    while not has_ended(job):
        now = time.monotonic()
        if now - began >= timeout:
            raise ClientError(f"`{job['id']}` has not ended after {timeout:g} s, and goes on")
        if is_terminal or now - shown >= seconds:
            shown_on.write(f"\r\x1b[K{printable(line(job))}" if is_terminal else f"{printable(line(job))}\n")
            shown_on.flush()
            shown = now
        job = _fetch_or_wait(fetch, job)
    if is_terminal:
        shown_on.write(f"\r\x1b[K{printable(line(job))}\n")
    return job


def _fetch_or_wait(fetch: Callable[[], Data], job: Data) -> Data:
    try:
        return fetch()
    except Unreachable:
        pass
    except ApiError as error:
        if error.status != _BUSY:
            raise
    time.sleep(PAUSE)
    return job
