"""The accounts of the cluster, as the agents that measure usage find them, and whether the list is complete.

Swift has no listing of accounts; their databases are on storage nodes.  An account that is deleted stays in the list:
a job finds no container in it.

Theory of operation.

* A job for all accounts opens a request with a new name.  Agents check for open requests every few seconds,
  have all account databases of their node read, write the names into the list, and then a report.  It
  names the requests that were open before the reading began.  So no clocks are compared, and a reading that began
  before the request does not count.
* Each reader reports the devices of the account ring, and which of them it has read.  The list is complete when every
  device of the ring, as any of the readers knows it, was read.  The set of agents does not matter: a node
  without an agent is missing like a node whose agent has no `storage_confs`.
* If Redis lost its data, it lost the request, too, which the job detects.  Names are written after the
  request and before the report, so the names exist when both exist.
* An agent writes that it is reading as long as it does.  When devices are missing and no agent has written that for
  :data:`PATIENCE` seconds, the collection fails.

Time is that of Redis.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from sluice_core.messages.base import Message, PackedMessage
from sluice_core.messages.nodes import NodeReport
from sluice_core.store.keys import Keys
from sluice_core.store.operation import Operation, decode_all, nothing, scripted, timed_script

#: Prefix of the account that holds copies of the objects of another account.  Like other accounts of
#: Swift's own, clients cannot reach it, and its bytes do not count for the other account.
_COPIES: Final = ".sluice_copies_"
#: The same of an account whose containers have rows only, which name the references to copies.
_REFERENCES: Final = ".sluice_references_"
#: Names that are written by one command.
_CHUNK: Final = 1000


def copies_account(account: str) -> str:
    """The account that holds the copies of an account's objects."""
    return f"{_COPIES}{account}"


def references_account(copies: str) -> str:
    """The account that holds the references to the copies in an account."""
    return f"{_REFERENCES}{owner_account(copies)}"


def is_copies_account(account: str) -> bool:
    """Whether an account holds copies."""
    return account.startswith(_COPIES)


def owner_account(account: str) -> str:
    """The account whose objects an account holds: that of the copies, or itself."""
    return account.removeprefix(_COPIES)


def add_accounts(keys: Keys, names: Iterable[str]) -> Operation[None]:
    """Add accounts; known ones stay."""
    raw = [name.encode("utf-8", "surrogateescape") for name in names]
    commands = [
        ("ZADD", keys.accounts, *(word for name in raw[start : start + _CHUNK] for word in (0, name)))
        for start in range(0, len(raw), _CHUNK)
    ]
    return Operation(tuple(commands), nothing)


def accounts_after(keys: Keys, marker: str, limit: int) -> Operation[list[str]]:
    """Up to ``limit`` accounts behind the name ``marker``, in the order of their bytes."""
    begin = b"(" + marker.encode("utf-8", "surrogateescape") if marker else b"-"
    command = ("ZRANGEBYLEX", keys.accounts, begin, b"+", "LIMIT", 0, limit)
    return Operation((command,), lambda replies: [name.decode("utf-8", "surrogateescape") for name in replies[0]])


#: Seconds after which a node that does not read is no longer waited for.
PATIENCE: Final = 30.0
#: Seconds after which a request that was not closed is removed.
_FORGOTTEN: Final = 7 * 86400.0
#: Devices and nodes that a problem names.
_NAMED: Final = 5
_WHAT_TO_SET: Final = "set `storage_confs` in the agent.conf there, have agent and devices up, and order it again"

#: KEYS: requests.  ARGV: name, seconds after which others are removed.
_OPEN: Final = timed_script("""
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now - tonumber(ARGV[2]))
redis.call('ZADD', KEYS[1], now, ARGV[1])
return ARGV[1]
""")

#: KEYS: readers.  ARGV: node.
_READING: Final = timed_script("return redis.call('ZADD', KEYS[1], now, ARGV[1])")


@dataclass(frozen=True, slots=True)
class AccountsFound(PackedMessage):
    """The answer of a usage reader to its agent.

    :param accounts: of all databases that it has read
    :param ring: the devices of the account ring that have a weight, each as ``ip:port/device``
    :param read: those of them that are on this node, and were read to the end
    :param faults: databases that could not be read
    """

    accounts: tuple[str, ...] = ()
    ring: tuple[str, ...] = ()
    read: tuple[str, ...] = ()
    faults: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class AccountReport(Message):
    """An agent's report after all accounts are in the list; ``requests`` were open before the reading began."""

    node: str
    requests: tuple[str, ...]
    ring: tuple[str, ...]
    read: tuple[str, ...]
    faults: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class AccountCollection:
    """The progress of a request.

    :param age: seconds since it was opened; None when Redis does not know it
    :param reports: the reports for it
    :param reading: nodes whose agents wrote lately that they are reading
    :param agents: nodes with disks whose agents are known
    :param accounts: in the list
    """

    age: float | None
    reports: tuple[AccountReport, ...] = ()
    reading: frozenset[str] = frozenset()
    agents: frozenset[str] = frozenset()
    accounts: int = 0

    @property
    def missing(self) -> tuple[str, ...]:
        """Devices of the ring that no reader has read."""
        ring = {device for report in self.reports for device in report.ring}
        return tuple(sorted(ring.difference(*(report.read for report in self.reports))))

    @property
    def faults(self) -> tuple[str, ...]:
        """Databases that could not be read."""
        return tuple(f"`{report.node}`: {fault}" for report in self.reports for fault in report.faults)

    @property
    def is_complete(self) -> bool:
        """Whether the list has every account that existed when the request was opened."""
        known = self.age is not None and any(report.ring for report in self.reports)
        return known and not self.missing and not self.faults

    @property
    def progress(self) -> str:
        """How many storage nodes have reported, in words."""
        nodes = _servers(device for report in self.reports for device in report.ring)
        if not nodes:
            return "collecting accounts: no storage node has reported yet"
        return f"collecting accounts ({len(nodes - _servers(self.missing))} of {len(nodes)} nodes)"

    @property
    def problem(self) -> str:
        """Why the list will not become complete; empty while it still may."""
        if self.age is None:
            return "redis has lost the request for the accounts; order it again"
        answered = {report.node for report in self.reports}
        if self.is_complete or self.age < PATIENCE or self.reading - answered:
            return ""
        if self.faults:
            return f"accounts cannot be read on {_some(self.faults)}"
        if not self.reports:
            there = f", of {_some(sorted(self.agents))} neither" if self.agents else ""
            return f"no agent of a storage node has reported its accounts{there}: {_WHAT_TO_SET}"
        return f"no agent has read the accounts on {_some(_by_server(self.missing))}: {_WHAT_TO_SET}"


def new_request() -> str:
    """A name that no request has had."""
    return secrets.token_hex(8)


def open_request(keys: Keys, request: str) -> Operation[None]:
    """Request the accounts of all agents' nodes."""
    return scripted(_OPEN, (keys.account_requests,), (request, f"{_FORGOTTEN:.0f}"), lambda reply: None)


def close_request(keys: Keys, request: str) -> Operation[None]:
    """Close a request whose answers are no longer needed."""
    return Operation((("ZREM", keys.account_requests, request),), nothing)


def open_requests(keys: Keys) -> Operation[frozenset[str]]:
    """The names of all open requests."""
    command = ("ZRANGE", keys.account_requests, 0, -1)
    return Operation((command,), lambda replies: frozenset(name.decode() for name in replies[0]))


def write_reading(keys: Keys, node: str) -> Operation[None]:
    """Write that the databases of a node are being read."""
    return scripted(_READING, (keys.account_readers,), (node,), lambda reply: None)


def write_report(keys: Keys, report: AccountReport) -> Operation[None]:
    """Write a report; its accounts are in the list already."""
    commands = (
        ("HSET", keys.account_reports, report.node, report.encode()),
        ("ZREM", keys.account_readers, report.node),
    )
    return Operation(commands, nothing, atomic=True)


def read_collection(keys: Keys, request: str) -> Operation[AccountCollection]:
    """Read the progress of a request."""

    def parse(replies: list[Any]) -> AccountCollection:
        time, opened, raw_reports, raw_readers, raw_nodes, accounts = replies
        now = int(time[0]) + int(time[1]) / 1e6
        reports = decode_all(AccountReport, raw_reports)[0].values()
        nodes = decode_all(NodeReport, raw_nodes)[0].values()
        readers: Sequence[bytes] = raw_readers
        times = zip(readers[::2], readers[1::2], strict=True)
        return AccountCollection(
            None if opened is None else now - float(opened),
            tuple(report for report in reports if request in report.requests),
            frozenset(name.decode() for name, at in times if now - float(at) < PATIENCE),
            frozenset(node.node for node in nodes if node.storage),
            int(accounts),
        )

    commands = (
        ("TIME",),
        ("ZSCORE", keys.account_requests, request),
        ("HGETALL", keys.account_reports),
        ("ZRANGE", keys.account_readers, 0, -1, "WITHSCORES"),
        ("HGETALL", keys.nodes),
        ("ZCARD", keys.accounts),
    )
    return Operation(commands, parse, atomic=True)


def _servers(devices: Iterable[str]) -> frozenset[str]:
    return frozenset(device.partition("/")[0] for device in devices)


def _by_server(devices: Sequence[str]) -> list[str]:
    """``sdb, sdc of 10.0.0.3:6202`` of each server."""
    by_server: dict[str, list[str]] = {}
    for device in devices:
        server, _, name = device.partition("/")
        by_server.setdefault(server, []).append(name)
    return [f"{', '.join(names)} of {server}" for server, names in sorted(by_server.items())]


def _some(words: Sequence[str]) -> str:
    more = f"; and {len(words) - _NAMED} more" if len(words) > _NAMED else ""
    return "; ".join(words[:_NAMED]) + more
