"""An operation of the store: commands for Redis and the parser of their replies, without I/O.

:class:`sluice_core.store.store.Store` and :class:`sluice_core.store.store.AsyncStore` run operations; other modules of
this package build them.

An operation may be a Lua script, which is one atomic change.  Redis does not undo what a script wrote before it failed,
so in a script every check comes first.
"""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Generic, TypeVar

from sluice_core.errors import DecodeError
from sluice_core.messages.base import Message
from sluice_core.store.keys import Keys

log = logging.getLogger(__name__)

T = TypeVar("T")
M = TypeVar("M", bound=Message)
Command = tuple[str | bytes | int | float, ...]


@dataclass(frozen=True, slots=True)
class Script:
    """A script's source and the digest that it is called by."""

    source: str
    #: The digest for EVALSHA.
    sha: str = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "sha", hashlib.sha1(self.source.encode(), usedforsecurity=False).hexdigest())


def timed_script(source: str) -> Script:
    """Return a script that has ``now``, unix seconds of Redis' clock: its callers run on many machines."""
    return Script(
        f"""
local time = redis.call('TIME')
local now = tonumber(time[1]) + tonumber(time[2]) / 1000000
{source.lstrip()}"""
    )


#: Compare and set.  KEYS: a hash.  ARGV: field, its expected bytes, its new bytes.  Returns whether it had the expected
#: bytes.
REPLACE: Final = Script("""
if redis.call('HGET', KEYS[1], ARGV[1]) ~= ARGV[2] then return 0 end
redis.call('HSET', KEYS[1], ARGV[1], ARGV[3])
return 1
""")


@dataclass(frozen=True, slots=True)
class Operation(Generic[T]):
    """Commands (or one script), and ``parse`` from their replies; ``atomic`` puts them into MULTI/EXEC.

    A ``blocking`` operation may wait in Redis for the next entry.
    """

    commands: tuple[Command, ...]
    parse: Callable[[list[Any]], T]
    atomic: bool = False
    script: Script | None = None
    blocking: bool = False


def scripted(
    script: Script, names: tuple[str, ...], arguments: Iterable[str | bytes | int], parse: Callable[[Any], T]
) -> Operation[T]:
    """One call of ``script`` with keys and arguments; ``parse`` gets its reply."""
    command = ("EVALSHA", script.sha, len(names), *names, *arguments)
    return Operation((command,), lambda replies: parse(replies[0]), script=script)


def nothing(replies: list[Any]) -> None:
    """Parse no reply: for operations without a meaningful reply."""


def decoded(cls: type[M], name: str, raw: bytes | None) -> M | None:
    """Return the message in ``raw``; return None, and log an error with the bytes, when it is not one."""
    if raw is None:
        return None
    try:
        return cls.decode(raw)
    except DecodeError as error:
        log.error("skipped %s `%s`: %s; raw %r", cls.__name__, name, error, raw[:200])
        return None


def decode_all(cls: type[M], hash_fields: Mapping[bytes, bytes]) -> tuple[dict[str, M], dict[str, str]]:
    """Return field → message, and field → reason for undecodable ones."""
    good: dict[str, M] = {}
    broken: dict[str, str] = {}
    for field_name, raw in sorted(hash_fields.items()):
        name = field_name.decode()
        try:
            good[name] = cls.decode(raw)
        except DecodeError as error:
            log.error("skipped %s `%s`: %s; raw %r", cls.__name__, name, error, raw[:200])
            broken[name] = str(error)
    return good, broken


@dataclass(frozen=True, slots=True)
class MessageHash(Generic[M]):
    """A hash of Redis that has one message in each field.

    :param cls: of the messages
    :param key: the hash's key
    :param field: the attribute of a message that is its field in the hash
    """

    cls: type[M]
    key: Callable[[Keys], str]
    field: str = "id"

    def read(self, keys: Keys, name: str) -> Operation[M | None]:
        """Read one message; None when there is none, or it cannot be decoded."""
        return Operation((("HGET", self.key(keys), name),), lambda replies: decoded(self.cls, name, replies[0]))

    def read_all(self, keys: Keys) -> Operation[dict[str, M]]:
        """Read field → message, in the order of the fields; undecodable ones are left out."""
        return Operation((("HGETALL", self.key(keys)),), lambda replies: decode_all(self.cls, replies[0])[0])

    def create(self, keys: Keys, message: M) -> Operation[bool]:
        """Write a new message; return False, and change nothing, when its field exists."""
        return Operation((("HSETNX", *self._words(keys, message)),), lambda replies: bool(replies[0]))

    def write(self, keys: Keys, message: M) -> Operation[None]:
        """Write a message, whether or not its field exists."""
        return Operation((("HSET", *self._words(keys, message)),), nothing)

    def replace(self, keys: Keys, before: M, after: M) -> Operation[bool]:
        """Replace ``before`` by ``after``; return False, and change nothing, when the field has other bytes."""
        key, name, new = self._words(keys, after)
        return scripted(REPLACE, (key,), (name, before.encode(), new), bool)

    def delete(self, keys: Keys, *names: str) -> Operation[bool]:
        """Delete messages; return False when none existed."""
        commands = (("HDEL", self.key(keys), *names),) if names else ()
        return Operation(commands, lambda replies: any(replies))

    def _words(self, keys: Keys, message: M) -> tuple[str, str, bytes]:
        return self.key(keys), getattr(message, self.field), message.encode()


def write_documents(key: str, documents: Mapping[str, Mapping[str, Any]]) -> Operation[None]:
    """Put plain JSON documents into a hash."""
    encoded = {name: json.dumps(data, separators=(",", ":"), sort_keys=True) for name, data in documents.items()}
    pairs = [word for pair in encoded.items() for word in pair]
    return Operation((("HSET", key, *pairs),) if pairs else (), nothing)


def read_document(key: str, name: str) -> Operation[dict[str, Any] | None]:
    """Read one plain JSON document."""
    return Operation((("HGET", key, name),), lambda replies: _document(name, replies[0]))


def read_documents(key: str) -> Operation[dict[str, dict[str, Any]]]:
    """Read field → plain JSON document of a whole hash."""

    def parse(replies: list[Any]) -> dict[str, dict[str, Any]]:
        read = {name.decode(): _document(name.decode(), raw) for name, raw in sorted(replies[0].items())}
        return {name: data for name, data in read.items() if data is not None}

    return Operation((("HGETALL", key),), parse)


def _document(name: str, raw: bytes | None) -> dict[str, Any] | None:
    if raw is None:
        return None
    try:
        data = json.loads(raw)
    except (ValueError, RecursionError) as error:
        log.error("skipped document `%s`: %s; raw %r", name, error, raw[:200])
        return None
    return data if isinstance(data, dict) else None
