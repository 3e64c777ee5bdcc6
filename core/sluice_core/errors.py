"""Errors, by the party that must act: the caller, a peer, or Sluice.

The first two carry the HTTP status that an API answers with.  A foreign
exception (redis, pika, lmdb) is translated into one of these in the one module that uses it.
"""

from __future__ import annotations


class SluiceError(Exception):
    """Root of all errors that Sluice raises on purpose; raised bare, it is a bug of Sluice."""

    status = 500


class CallerError(SluiceError):
    """The caller sent a request that cannot work; a repetition fails too."""

    status = 400


class Forbidden(CallerError):
    """The caller may not do this; the message says which right is required."""

    status = 403


class NotFound(CallerError):
    """The named thing does not exist."""

    status = 404


class Conflict(CallerError):
    """The object changed meanwhile (expected version), or contradicts another one."""

    status = 409


class Fenced(Conflict):
    """An actor host decided this under an ownership that has ended; ``slot`` names the owned slot."""

    def __init__(self, slot: str, found: str) -> None:
        super().__init__(f"slot `{slot}` is owned by `{found}` now, not by the host that decided this")
        self.slot = slot


class PeerError(SluiceError):
    """A peer (Redis, RabbitMQ, another process) is unreachable or answers nonsense; a later attempt may succeed."""

    status = 503
    #: Seconds after which a client may try again; 0 if unknown.
    retry_after = 0


class DecodeError(PeerError):
    """Bytes that are not a message of Sluice; ``raw`` keeps them."""

    def __init__(self, message: str, raw: bytes = b"") -> None:
        super().__init__(message)
        self.raw = raw
