"""The operations of the store: each builds commands for Redis and parses their replies.

``sluice_core.store.store`` makes a method of each, for threads and for asyncio.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Mapping
from typing import Any, Final

from sluice_core.messages.bandwidth_report import BandwidthReport, IdleFlowReport
from sluice_core.messages.nodes import NodeReport
from sluice_core.messages.policies import Assignment, Entry, Policy, PolicyState
from sluice_core.messages.registry import ServiceState
from sluice_core.messages.uploads import Upload
from sluice_core.store.history_check import digest_command, parse_digest
from sluice_core.store.keys import Keys
from sluice_core.store.operation import (
    Command,
    M,
    MessageHash,
    Operation,
    Script,
    decode_all,
    decoded,
    nothing,
    read_document,
    read_documents,
    scripted,
    write_documents,
)
from sluice_core.store.records import FullState, Head

#: Adopt the present state, as a new history if there is none (a wiped Redis), and record the user.  ARGV: id for a new
#: history, user, time.  Returns ``[history, epoch]``.
ADOPT: Final = Script("""
local history, epoch = redis.call('GET', KEYS[1]), redis.call('GET', KEYS[2]) or '0'
if not history then
  history, epoch = ARGV[1], '0'
  redis.call('DEL', KEYS[5], KEYS[6])
  redis.call('SET', KEYS[1], history)
  redis.call('SET', KEYS[2], epoch)
end
redis.call('SET', KEYS[3], history .. ':' .. epoch)
redis.call('LPUSH', KEYS[4], cjson.encode({history = history, epoch = tonumber(epoch), by = ARGV[2], at = ARGV[3]}))
redis.call('LTRIM', KEYS[4], 0, 99)
return {history, epoch}
""")

#: All policies with their versions, read together: a list of id, document, version.
POLICIES: Final = Script("""
local found, flat = redis.call('HGETALL', KEYS[1]), {}
for i = 1, #found, 2 do
  flat[#flat + 1] = found[i]
  flat[#flat + 1] = found[i + 1]
  flat[#flat + 1] = redis.call('HGET', KEYS[2], 'policy/' .. found[i]) or '0'
end
return flat
""")

# Only :data:`NODES` is written by itself; a commit writes policies' states, uploads and entries.
#: Policy id → the state that its actor wrote.
STATES: Final = MessageHash(PolicyState, lambda keys: keys.states, "policy")
#: Keyword → the code registered at run time.
UPLOADS: Final = MessageHash(Upload, lambda keys: keys.uploads, "keyword")
#: ``kind/name`` → the entry in the registry.
ENTRIES: Final = MessageHash(Entry, lambda keys: keys.registry, "key")
#: Assignment id → the last call about it to a federated service.
SERVICE_STATES: Final = MessageHash(ServiceState, lambda keys: keys.services, "assignment")
#: The last report of every node.
NODES: Final = MessageHash(NodeReport, lambda keys: keys.nodes, "node")

#: Seconds for which Redis keeps a bandwidth report.
REPORT_RETENTION: Final = 10.0
#: Age in seconds above which a bandwidth report is out of date.
REPORT_FRESH: Final = 5.0


def head(keys: Keys) -> Operation[Head]:
    """The newest change."""
    return Operation((("MGET", keys.history, keys.epoch),), lambda replies: parse_head(replies[0]))


def head_and_adopted(keys: Keys) -> Operation[tuple[Head, Head]]:
    """The newest change, and the history that was last adopted."""

    def parse(replies: list[Any]) -> tuple[Head, Head]:
        *pair, raw = replies[0]
        return parse_head(pair), _parse_adopted(raw)

    return Operation((("MGET", keys.history, keys.epoch, keys.adopted),), parse)


def parse_head(pair: list[bytes | None]) -> Head:
    """The head in the values of ``Keys.history`` and ``Keys.epoch``."""
    history, epoch = pair
    return Head() if history is None else Head(history.decode(), int(epoch or 0))


def _parse_adopted(raw: bytes | None) -> Head:
    """``history:epoch`` as a head; empty when nothing was adopted."""
    history, _, epoch = (raw or b"").decode().rpartition(":")
    return Head(history, int(epoch)) if history else Head()


def adopt(keys: Keys, by: str) -> Operation[Head]:
    """Order agents to accept the present state, by a full reload; a wiped Redis becomes a new history."""
    names = (keys.history, keys.epoch, keys.adopted, keys.adoptions, keys.changes, keys.past)
    return scripted(ADOPT, names, (uuid.uuid4().hex, by, f"{time.time():.3f}"), parse_head)


def policy(keys: Keys, name: str) -> Operation[tuple[Policy, int] | None]:
    """A policy and its version."""

    def parse(replies: list[Any]) -> tuple[Policy, int] | None:
        found = decoded(Policy, name, replies[0])
        return None if found is None else (found, int(replies[1] or 0))

    commands = (("HGET", keys.policies, name), ("HGET", keys.versions, f"policy/{name}"))
    return Operation(commands, parse, atomic=True)


def policies(keys: Keys) -> Operation[list[tuple[Policy, int]]]:
    """All policies and their versions, by ``created`` and id."""

    def parse(flat: list[bytes]) -> list[tuple[Policy, int]]:
        stored = []
        for name, raw, version in zip(flat[::3], flat[1::3], flat[2::3], strict=True):
            one = decoded(Policy, name.decode(), raw)
            if one is not None:
                stored.append((one, int(version)))
        return sorted(stored, key=lambda pair: (pair[0].created, pair[0].id))

    return scripted(POLICIES, (keys.policies, keys.versions), (), parse)


def assignments(keys: Keys) -> Operation[list[Assignment]]:
    """All assignments, by id."""
    return _read_list(Assignment, keys.assignments)


def version(keys: Keys, name: str) -> Operation[int]:
    """The version of a record, named as in ``Draft.expect``; 0: it does not exist."""
    return Operation((("HGET", keys.versions, name),), lambda replies: int(replies[0] or 0))


def epochs(keys: Keys) -> Operation[dict[str, int]]:
    """Policy id → epoch of the last change of it or its assignments."""
    return Operation(
        (("HGETALL", keys.epochs),),
        lambda replies: {name.decode(): int(epoch) for name, epoch in replies[0].items()},
    )


def load(keys: Keys) -> Operation[FullState]:
    """Read all assignments, uploads and registry entries, and their epoch, together."""

    def parse(replies: list[Any]) -> FullState:
        at = parse_head(replies[0])
        assignments, broken = decode_all(Assignment, replies[1])
        uploads, _ = decode_all(Upload, replies[2])
        entries, _ = decode_all(Entry, replies[3])
        return FullState(
            at.history, at.epoch, tuple(assignments.values()), broken, tuple(uploads.values()), tuple(entries.values()),
            parse_digest(replies[4]),
        )  # fmt: skip

    wanted = (keys.assignments, keys.uploads, keys.registry)
    commands = (("MGET", keys.history, keys.epoch), *(("HGETALL", key) for key in wanted), digest_command(keys))
    return Operation(commands, parse, atomic=True)


def nodes(keys: Keys) -> Operation[list[NodeReport]]:
    """The last report of every node, by node."""
    return _read_list(NodeReport, keys.nodes)


def report(keys: Keys, report: NodeReport) -> Operation[None]:
    """Keep a node's report and publish its ACK."""
    return Operation(report_commands(keys, report), nothing)


def report_commands(keys: Keys, report: NodeReport) -> tuple[Command, ...]:
    """The commands of :func:`report`, for the round trip of another operation."""
    return (
        ("HSET", keys.nodes, report.node, report.encode()),
        ("PUBLISH", keys.acks, f"{report.node} {report.epoch}"),
    )


def watch(keys: Keys, policy: str, seconds: float) -> Operation[None]:
    """Ask for a policy's metric values to be observed for the next seconds."""
    return Operation((("ZADD", keys.watched, time.time() + seconds, policy),), nothing)


def watched(keys: Keys, now: float) -> Operation[list[str]]:
    """Read the policies to observe; expired requests are deleted."""
    commands = (("ZREMRANGEBYSCORE", keys.watched, "-inf", f"({now}"), ("ZRANGE", keys.watched, 0, -1))
    return Operation(commands, lambda replies: [name.decode() for name in replies[1]])


def observe(keys: Keys, values: Mapping[str, Mapping[str, Any]]) -> Operation[None]:
    """Write policy id → its metric values, for the requests that observe it."""
    return write_documents(keys.observed, values)


def observed(keys: Keys, policy: str) -> Operation[dict[str, Any] | None]:
    """The last observed metric values of a policy."""
    return read_document(keys.observed, policy)


def host_report(keys: Keys, host: str, data: Mapping[str, Any]) -> Operation[None]:
    """Keep the report of an actor host."""
    return write_documents(keys.hosts, {host: data})


def hosts(keys: Keys) -> Operation[dict[str, dict[str, Any]]]:
    """Actor host id → its last report."""
    return read_documents(keys.hosts)


def write_service_states(keys: Keys, changes: Mapping[str, ServiceState | None]) -> Operation[None]:
    """Write the states of some calls, by assignment; None deletes one."""
    kept = [word for name, one in changes.items() if one is not None for word in (name, one.encode())]
    gone = [name for name, one in changes.items() if one is None]
    commands: list[Command] = []
    if kept:
        commands.append(("HSET", keys.services, *kept))
    if gone:
        commands.append(("HDEL", keys.services, *gone))
    return Operation(tuple(commands), nothing)


def _read_list(cls: type[M], key: str) -> Operation[list[M]]:
    return Operation((("HGETALL", key),), lambda replies: list(decode_all(cls, replies[0])[0].values()))


def read_bandwidth_report(keys: Keys) -> Operation[tuple[BandwidthReport | None, float]]:
    """Read the bandwidth report, and the seconds until it expires; negative without an expiry."""

    def parse(replies: list[Any]) -> tuple[BandwidthReport | None, float]:
        raw, left = replies
        return decoded(BandwidthReport, keys.bandwidth, raw), left / 1000

    return Operation((("GET", keys.bandwidth), ("PTTL", keys.bandwidth)), parse)


def read_idle_flows(keys: Keys, digest: str) -> Operation[IdleFlowReport | None]:
    """Read the rows of idle flows that a report names."""
    key = keys.promises(digest)
    return Operation((("GET", key),), lambda replies: decoded(IdleFlowReport, key, replies[0]))
