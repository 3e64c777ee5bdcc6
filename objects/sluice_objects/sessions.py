"""Sessions: a call that is sent twice takes effect once.

A client that numbers its calls names its session and the number with each.  The state keeps the last number of each
session and the answer to it, and both are committed together with the effect of the call.  Calls of methods that do
not write need no number.

A call that was refused or failed had no effect and is not kept: sent again, it runs again.  So a client or proxy
repeats a call only while it has no answer to it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from sluice_objects.api import Refused
from sluice_objects.state.records import Session

#: Sessions of an object; the least recently used one is forgotten.
MOST: Final = 1000
#: Bytes of an encoded answer up to which it is kept.
LARGEST_KEPT: Final = 4096
LONGEST_ID: Final = 128


class OlderNumber(Refused):
    """The session has a later call."""

    def __init__(self, number: int, last: int) -> None:
        super().__init__(f"call `{number}` of the session, expected {last} again or a higher number", 409)


class UnknownSession(Refused):
    """The object does not know the session any more, so it cannot say whether an earlier attempt had an effect."""

    def __init__(self, number: int) -> None:
        super().__init__(f"call `{number}` of an unknown session, expected 1: open another session", 409)


def repeated(sessions: Mapping[str, Session], session: str, number: int) -> Session | None:
    """What is kept of a call that was made already; None when it is to be made now.

    :raises Refused: when the call is older than the last one of the session, or does not open an unknown session
    """
    if len(session) > LONGEST_ID or not (session.isascii() and session.isprintable()):
        raise Refused(f"the id of the session, expected at most {LONGEST_ID} printable ASCII characters")
    if not 1 <= number < 1 << 63:
        raise Refused(f"call `{number}` of a session, expected 1 or a higher number of 63 bits")
    kept = sessions.get(session)
    if kept is None:
        if number > 1:
            raise UnknownSession(number)
        return None
    if number < kept.number:
        raise OlderNumber(number, kept.number)
    return kept if number == kept.number else None


def remember(sessions: Mapping[str, Session], session: str, last: Session) -> dict[str, Session]:
    """The sessions with the last call of one, the least recently used first."""
    kept = dict(sessions)
    kept.pop(session, None)
    if len(kept) >= MOST:
        del kept[next(iter(kept))]
    if last.answer is not None and len(last.answer) > LARGEST_KEPT:
        last = Session(last.number, None, last.version, last.used)
    kept[session] = last
    return kept
