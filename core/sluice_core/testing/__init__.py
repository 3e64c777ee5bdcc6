"""For tests of Sluice and of plugin authors: short constructors of messages, and a bus without a broker."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from sluice_core.describe import FILTER, Scalar
from sluice_core.errors import NotFound
from sluice_core.messages.policies import Assignment, Policy, Target
from sluice_core.messages.predicate import Predicate


class _Pieces(io.BytesIO):
    """Bytes that are read in two pieces."""

    def __iter__(self) -> Iterator[bytes]:
        yield self.read(2)
        yield self.read()


class FakeSwiftCodeStore:
    """A fake ``SwiftCodeStore``: code by its SHA-256; an exception in the place of code is raised.

    ``asked`` are the requested digests, ``given`` the returned files, which the caller closes.
    """

    def __init__(self, *codes: bytes) -> None:
        self.codes: dict[str, bytes | Exception] = {hashlib.sha256(code).hexdigest(): code for code in codes}
        self.asked: list[str] = []
        self.given: list[io.BytesIO] = []

    def get(self, sha256: str) -> io.BytesIO:
        """As of ``SwiftCodeStore``."""
        self.asked.append(sha256)
        code = self.codes.get(sha256, NotFound(f"there is no code `{sha256}` in swift"))
        if isinstance(code, Exception):
            raise code
        self.given.append(_Pieces(code))
        return self.given[-1]


def target_of(path: str) -> Target:
    """Return ``AUTH_a``, ``AUTH_a/c`` or ``AUTH_a/c/o`` as a target; empty is the whole cluster."""
    if not path:
        return Target("cluster", "all")
    return Target(("tenant", "container", "object")[min(path.count("/"), 2)], "name", path)


def assignment(
    id: str = "p1.0",  # noqa: A002 -- the field's name
    path: str = "AUTH_test",
    keyword: str = "noop",
    kind: str = FILTER,
    verb: str = "set",
    when: Predicate = True,
    params: Mapping[str, Scalar] | None = None,
    **more: Any,
) -> Assignment:
    """Return an assignment for the target at ``path``; its policy is the first part of its id."""
    policy = id.partition("@")[0].rpartition(".")[0] or id
    target = more.pop("target", None) or target_of(path)
    return Assignment(id, policy, kind, verb, keyword, target, params=params or {}, when=when, **more)


def policy(id: str = "p1", created: int = 1, dynamic: bool = False) -> Policy:  # noqa: A002 -- the field's name
    """A policy that sets ``noop`` for one tenant."""
    sentence = "FOR TENANT AUTH_test DO SET noop"
    return Policy(id, sentence, sentence, {}, dynamic, created)


class FakeBus:
    """Publisher and broker in one: delivers each message to every consumer with a matching pattern."""

    def __init__(self) -> None:
        self.sent: list[tuple[str, bytes]] = []
        self.dropped = 0
        self._consumers: list[tuple[str, Callable[[str, bytes], None]]] = []

    def subscribe(self, pattern: str, callback: Callable[[str, bytes], None]) -> None:
        """Call ``callback(routing_key, body)`` for each message whose key fits ``pattern`` (``*``, ``#``)."""
        self._consumers.append((pattern, callback))

    def publish(self, routing_key: str, body: bytes) -> None:
        """Deliver at once."""
        self.sent.append((routing_key, body))
        for pattern, callback in self._consumers:
            if fits(pattern.split("."), routing_key.split(".")):
                callback(routing_key, body)


def fits(pattern: list[str], words: list[str]) -> bool:
    """Whether a topic exchange would route ``words`` to a binding with ``pattern``."""
    if not pattern:
        return not words
    first, rest = pattern[0], pattern[1:]
    if first == "#":
        return any(fits(rest, words[skip:]) for skip in range(len(words) + 1))
    return bool(words) and first in ("*", words[0]) and fits(rest, words[1:])
