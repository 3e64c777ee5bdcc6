"""Errors, split by who must act: the caller, a peer, or us.

The first two carry the HTTP status that an API answers with.  A foreign
exception (redis, pika, lmdb) is translated into one of these at its one door.
"""

from __future__ import annotations


class SluiceError(Exception):
    """Root of all errors that Sluice raises on purpose; ours to mend when raised bare."""

    status = 500


class CallerError(SluiceError):
    """The caller sent something that cannot work; sending it again will not help."""

    status = 400


class Forbidden(CallerError):
    """The caller may not do this; the message says what it would take."""

    status = 403


class NotFound(CallerError):
    """The named thing does not exist."""

    status = 404


class Conflict(CallerError):
    """The thing changed meanwhile (expected version), or contradicts another one."""

    status = 409


class Fenced(Conflict):
    """Decided by an actor host under an ownership that is over; ``slot`` says which."""

    def __init__(self, slot: str, found: str) -> None:
        super().__init__(f"slot `{slot}` is owned by `{found}` now, not by whoever decided this")
        self.slot = slot


class PeerError(SluiceError):
    """A peer (Redis, RabbitMQ, another process) is away or answers nonsense; later may help."""

    status = 503
    #: Seconds after which a client may try again; 0 when nobody knows.
    retry_after = 0


class DecodeError(PeerError):
    """Bytes that are no message of ours; ``raw`` keeps them."""

    def __init__(self, message: str, raw: bytes = b"") -> None:
        super().__init__(message)
        self.raw = raw
