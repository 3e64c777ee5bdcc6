"""What the store does, without doing it: commands for Redis and how their replies are read.

Pure functions, shared by :class:`sluice_core.store.store.Store` and
:class:`sluice_core.store.store.AsyncStore`, so that both mean the same.
"""

from __future__ import annotations

import json
import logging
import uuid
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Generic, TypeVar

from sluice_core.errors import Conflict, DecodeError, Fenced
from sluice_core.messages.base import Message
from sluice_core.messages.policies import Assignment, Change, Entry, NodeReport, Policy, PolicyState, Upload
from sluice_core.store.keys import Keys
from sluice_core.store.scripts import ADOPT, COMMIT, POLICIES, Script

log = logging.getLogger(__name__)

T = TypeVar("T")
M = TypeVar("M", bound=Message)
Command = tuple[str | bytes | int | float, ...]

#: Changes kept for agents that were cut off; who missed more reloads everything.
STREAM_LENGTH: Final = 10_000


@dataclass(frozen=True, slots=True)
class Draft:
    """One atomic change to be.

    Keys of ``expect`` are ``assignment/<id>``, ``policy/<id>``, ``state/<id>``, ``upload/<key>`` and
    ``entry/<kind>/<name>``, values the versions found by whoever drafted; 0 means "must not exist".
    ``history``, unless empty, must be the current one.  A dropped policy takes its assignments and its state with it;
    one that is dropped and put is replaced, so that nothing of what the old one set is left.
    A draft of states only does not move the epoch.
    ``fence`` maps slots to the ownership under which this was decided (``sluice_core.store.fencing``).
    """

    by: str
    puts: tuple[Assignment, ...] = ()
    drops: tuple[str, ...] = ()
    policies: tuple[Policy, ...] = ()
    policy_drops: tuple[str, ...] = ()
    states: tuple[PolicyState, ...] = ()
    uploads: tuple[Upload, ...] = ()
    upload_drops: tuple[str, ...] = ()
    entries: tuple[Entry, ...] = ()
    entry_drops: tuple[str, ...] = ()
    expect: Mapping[str, int] = field(default_factory=dict)
    history: str = ""
    fence: Mapping[str, str] = field(default_factory=dict)

    @property
    def moves(self) -> bool:
        """True when agents or actor hosts must hear of it."""
        agents = self.puts or self.drops or self.uploads or self.upload_drops or self.entries or self.entry_drops
        return bool(agents or self.policies or self.policy_drops)


@dataclass(frozen=True, slots=True)
class Committed:
    """Where a draft went; ``version`` is the new version of everything that it wrote."""

    history: str
    epoch: int
    version: int


@dataclass(frozen=True, slots=True)
class Head:
    """The newest change; ``history`` is empty when there is none (a new or wiped Redis)."""

    history: str = ""
    epoch: int = 0


@dataclass(frozen=True, slots=True)
class FullState:
    """All assignments at one moment; ``broken`` maps the id of an undecodable one to the reason."""

    history: str
    epoch: int
    assignments: tuple[Assignment, ...]
    broken: Mapping[str, str] = field(default_factory=dict)
    uploads: tuple[Upload, ...] = ()
    entries: tuple[Entry, ...] = ()


@dataclass(frozen=True, slots=True)
class Gap:
    """The changes after an epoch cannot be had any more; ``reason`` says why.  Load instead."""

    reason: str


@dataclass(frozen=True, slots=True)
class Operation(Generic[T]):
    """Commands (or one script), and what their replies mean; ``atomic`` puts them into MULTI/EXEC."""

    commands: tuple[Command, ...]
    parse: Callable[[list[Any]], T]
    atomic: bool = False
    script: Script | None = None


def packed(commands: Iterable[Command]) -> bytes:
    """The commands as Redis reads them."""
    parts: list[bytes] = []
    for command in commands:
        parts.append(b"*%d\r\n" % len(command))
        for word in command:
            raw = word if isinstance(word, bytes) else str(word).encode("utf-8", "surrogateescape")
            parts.append(b"$%d\r\n%b\r\n" % (len(raw), raw))
    return b"".join(parts)


def policy_of(assignment: str) -> str:
    """The policy id in an assignment's id ``<policy>.<number>[@<member>]``."""
    return assignment.partition("@")[0].rpartition(".")[0]


def commit(keys: Keys, draft: Draft, at: float, stream_length: int = STREAM_LENGTH) -> Operation[Committed]:
    """Apply ``draft``."""
    named = sorted({one.id for one in draft.policies} | set(draft.policy_drops))
    touched = {one.policy for one in draft.puts} | set(map(policy_of, draft.drops)) | {p.id for p in draft.policies}
    change = Change(
        0, "", at, draft.by, draft.puts, draft.drops, tuple(named), draft.uploads, draft.upload_drops,
        draft.entries, draft.entry_drops,
    )  # fmt: skip
    lists: tuple[list[tuple[str | bytes | int, ...]], ...] = (
        sorted(draft.expect.items()),
        [(one.id, one.encode()) for one in draft.puts],
        [(name,) for name in draft.drops],
        [(one.id, one.encode()) for one in draft.policies],
        [(name, f"{_glob_quoted(name)}.*") for name in draft.policy_drops],
        [(one.policy, one.encode()) for one in draft.states],
        [(name,) for name in sorted(touched - (set(draft.policy_drops) - {one.id for one in draft.policies}))],
        [(one.key, one.encode()) for one in draft.uploads],
        [(name,) for name in draft.upload_drops],
        [(one.key, one.encode()) for one in draft.entries],
        [(name,) for name in draft.entry_drops],
        sorted(draft.fence.items()),
    )
    arguments: list[str | bytes | int] = [uuid.uuid4().hex, draft.history, int(draft.moves), stream_length]
    arguments.append(change.encode())
    for items in lists:
        arguments.append(len(items))
        for item in items:
            arguments.extend(item)
    names = (
        keys.history, keys.epoch, keys.assignments, keys.policies, keys.states, keys.versions,
        keys.epochs, keys.changes, keys.observed, keys.watched, keys.uploads, keys.registry,
        keys.owners, keys.past,
    )  # fmt: skip
    return _scripted(COMMIT, names, arguments, _parse_commit)


def _glob_quoted(text: str) -> str:
    return "".join(f"\\{char}" if char in "*?[]\\^-" else char for char in text)


def _scripted(
    script: Script, names: tuple[str, ...], arguments: Iterable[str | bytes | int], parse: Callable[[Any], T]
) -> Operation[T]:
    command = ("EVALSHA", script.sha, len(names), *names, *arguments)
    return Operation((command,), lambda replies: parse(replies[0]), script=script)


def _parse_commit(reply: list[Any]) -> Committed:
    if reply[0] == b"ok":
        return Committed(reply[1].decode(), int(reply[2]), int(reply[3]))
    name, found = reply[1].decode(), reply[2].decode()
    if reply[0] == b"fenced":
        raise Fenced(name, found)
    if name == "history":
        raise Conflict(f"history is `{found}` now, not the expected one")
    raise Conflict(f"`{name}` is at version {found} now, not the expected one")


def head(keys: Keys) -> Operation[Head]:
    """The newest change."""
    return Operation((("MGET", keys.history, keys.epoch),), lambda replies: _parse_head(replies[0]))


def _parse_head(pair: list[bytes | None]) -> Head:
    history, epoch = pair
    return Head() if history is None else Head(history.decode(), int(epoch or 0))


def standing(keys: Keys) -> Operation[tuple[Head, Head]]:
    """The newest change, and what was last adopted."""

    def parse(replies: list[Any]) -> tuple[Head, Head]:
        *pair, raw = replies[0]
        return _parse_head(pair), parse_adopted(raw)

    return Operation((("MGET", keys.history, keys.epoch, keys.adopted),), parse)


def adopt(keys: Keys, by: str, at: float) -> Operation[Head]:
    """Tell agents to take what there is now, by a full reload."""
    names = (keys.history, keys.epoch, keys.adopted, keys.adoptions, keys.changes, keys.past)
    return _scripted(ADOPT, names, (uuid.uuid4().hex, by, f"{at:.3f}"), _parse_head)


def adoptions(keys: Keys) -> Operation[list[dict[str, Any]]]:
    """Who adopted what when, newest first: history, epoch, by, at (unix seconds)."""

    def parse(replies: list[Any]) -> list[dict[str, Any]]:
        read = [_document("adoption", raw) for raw in replies[0]]
        return [{**one, "at": float(one["at"])} for one in read if one is not None]

    return Operation((("LRANGE", keys.adoptions, 0, -1),), parse)


def parse_adopted(raw: bytes | None) -> Head:
    """``history:epoch`` as a head; empty when nothing was adopted."""
    history, _, epoch = (raw or b"").decode().rpartition(":")
    return Head(history, int(epoch)) if history else Head()


def policy(keys: Keys, name: str) -> Operation[tuple[Policy, int] | None]:
    """One policy with its version."""

    def parse(replies: list[Any]) -> tuple[Policy, int] | None:
        found = decoded(Policy, name, replies[0])
        return None if found is None else (found, int(replies[1] or 0))

    commands = (("HGET", keys.policies, name), ("HGET", keys.versions, f"policy/{name}"))
    return Operation(commands, parse, atomic=True)


def policies(keys: Keys) -> Operation[list[tuple[Policy, int]]]:
    """All policies with their versions, oldest first."""

    def parse(flat: list[bytes]) -> list[tuple[Policy, int]]:
        found = []
        for name, raw, version in zip(flat[::3], flat[1::3], flat[2::3], strict=True):
            one = decoded(Policy, name.decode(), raw)
            if one is not None:
                found.append((one, int(version)))
        return sorted(found, key=lambda pair: (pair[0].created, pair[0].id))

    return _scripted(POLICIES, (keys.policies, keys.versions), (), parse)


def version(keys: Keys, name: str) -> Operation[int]:
    """The version of ``kind/id``; 0 when it does not exist."""
    return Operation((("HGET", keys.versions, name),), lambda replies: int(replies[0] or 0))


def one_of(cls: type[M], key: str, name: str) -> Operation[M | None]:
    """The message in field ``name`` of a hash."""
    return Operation((("HGET", key, name),), lambda replies: decoded(cls, name, replies[0]))


def all_of(cls: type[M], key: str) -> Operation[dict[str, M]]:
    """Field → message of a whole hash, in the order of the fields."""
    return Operation((("HGETALL", key),), lambda replies: _decode_all(cls, replies[0])[0])


def load(keys: Keys) -> Operation[FullState]:
    """All assignments and where they stand, read together."""

    def parse(replies: list[Any]) -> FullState:
        at = _parse_head(replies[0])
        found, broken = _decode_all(Assignment, replies[1])
        uploads, _ = _decode_all(Upload, replies[2])
        entries, _ = _decode_all(Entry, replies[3])
        return FullState(
            at.history, at.epoch, tuple(found.values()), broken, tuple(uploads.values()), tuple(entries.values())
        )

    wanted = (keys.assignments, keys.uploads, keys.registry)
    commands = (("MGET", keys.history, keys.epoch), *(("HGETALL", key) for key in wanted))
    return Operation(commands, parse, atomic=True)


def report_commands(keys: Keys, report: NodeReport) -> tuple[Command, ...]:
    """Keep a node's report and tell those who wait for a roll-out."""
    return (
        ("HSET", keys.nodes, report.node, report.encode()),
        ("PUBLISH", keys.acks, f"{report.node} {report.epoch}"),
    )


def watch(keys: Keys, name: str, until: float) -> Operation[None]:
    """Somebody looks at the metric values of a policy until then."""
    return Operation((("ZADD", keys.watched, until, name),), nothing)


def watched(keys: Keys, now: float) -> Operation[list[str]]:
    """The policies that somebody looks at; those of the past are forgotten."""
    commands = (("ZREMRANGEBYSCORE", keys.watched, "-inf", f"({now}"), ("ZRANGE", keys.watched, 0, -1))
    return Operation(commands, lambda replies: [name.decode() for name in replies[1]])


def write_documents(key: str, documents: Mapping[str, Mapping[str, Any]]) -> Operation[None]:
    """Put plain JSON documents into a hash."""
    pairs = [word for name, data in documents.items() for word in (name, _json(data))]
    return Operation((("HSET", key, *pairs),) if pairs else (), nothing)


def read_document(key: str, name: str) -> Operation[dict[str, Any] | None]:
    """One plain JSON document."""
    return Operation((("HGET", key, name),), lambda replies: _document(name, replies[0]))


def read_documents(key: str) -> Operation[dict[str, dict[str, Any]]]:
    """Field → plain JSON document of a whole hash."""

    def parse(replies: list[Any]) -> dict[str, dict[str, Any]]:
        read = {name.decode(): _document(name.decode(), raw) for name, raw in sorted(replies[0].items())}
        return {name: data for name, data in read.items() if data is not None}

    return Operation((("HGETALL", key),), parse)


def nothing(replies: list[Any]) -> None:
    """For operations whose reply says nothing."""


def decoded(cls: type[M], name: str, raw: bytes | None) -> M | None:
    """The message in ``raw``; None, and an error in the log with the bytes, when it is none."""
    if raw is None:
        return None
    try:
        return cls.decode(raw)
    except DecodeError as error:
        log.error("skipped %s `%s`: %s; raw %r", cls.__name__, name, error, raw[:200])
        return None


def _decode_all(cls: type[M], found: Mapping[bytes, bytes]) -> tuple[dict[str, M], dict[str, str]]:
    good: dict[str, M] = {}
    broken: dict[str, str] = {}
    for field_name, raw in sorted(found.items()):
        name = field_name.decode()
        try:
            good[name] = cls.decode(raw)
        except DecodeError as error:
            log.error("skipped %s `%s`: %s; raw %r", cls.__name__, name, error, raw[:200])
            broken[name] = str(error)
    return good, broken


def _json(data: Mapping[str, Any]) -> str:
    return json.dumps(data, separators=(",", ":"), sort_keys=True)


def _document(name: str, raw: bytes | None) -> dict[str, Any] | None:
    if raw is None:
        return None
    try:
        data = json.loads(raw)
    except (ValueError, RecursionError) as error:
        log.error("skipped document `%s`: %s; raw %r", name, error, raw[:200])
        return None
    return data if isinstance(data, dict) else None
