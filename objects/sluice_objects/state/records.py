"""The state of an object: everything that its devices store under one stamp, but the voters.

Voters are metadata of the stored object, since a home needs them before it reads the state.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

#: Kinds of states: with methods; an object as Swift has it; and one that was deleted.
TYPED: Final = "typed"
PLAIN: Final = "plain"
DELETED: Final = "deleted"


@dataclass(frozen=True, slots=True)
class ContentState:
    """Byte stream, items and attributes at one time."""

    stream: bytes = b""
    items: Mapping[bytes, bytes] = field(default_factory=dict)
    attributes: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Session:
    """A client whose calls are numbered.

    :param number: of the last call
    :param answer: its encoded answer; None when it was too long to be kept
    :param version: of the object after that call
    :param used: the time of the object at the last call
    """

    number: int
    answer: bytes | None
    version: int
    used: float


@dataclass(frozen=True, slots=True)
class ObjectState:
    """
    :param version: raised by one by each call that changes the object, so not by one that only its session remembers.
        The version of the stamp counts commits, which may hold several calls.
    :param etag: of the byte stream, as Swift has it (MD5, in hexadecimal)
    :param class_name: empty unless the kind is :data:`TYPED`
    :param code: digest of an uploaded class; empty for one that is built in
    :param modified: seconds since 1970, when the content changed last
    :param clock: the time that methods see, which never goes back
    :param metadata: X-Object-Meta-… headers and those that Swift keeps with an object, names in lower case
    :param expires: seconds since 1970; None: never
    """

    kind: str
    content: ContentState
    version: int = 0
    etag: str = ""
    class_name: str = ""
    code: str = ""
    modified: float = 0.0
    clock: float = 0.0
    content_type: str = "application/octet-stream"
    metadata: Mapping[str, str] = field(default_factory=dict)
    expires: float | None = None
    snapshots: Mapping[str, ContentState] = field(default_factory=dict)
    sessions: Mapping[str, Session] = field(default_factory=dict)
