"""Calls from the API to the daemons `sluice-motifs`, through Redis: the API has no other way to a node.

Theory of operation

* A daemon that runs announces itself every few seconds.  Without one a call is refused at once.
* A call is put into a bounded list.  Whichever daemon is free moves it to a list of its own, works at it, and in one
  step takes it out of there and writes the answer, which has a life of its own.  The caller waits for the answer's key.
* A call that nobody took before its caller gave up is dropped by who takes it.
* What a daemon had in hand when it died is answered by another daemon, with an error that says so: it may have
  happened, and only the caller knows whether to ask again.

Time is that of Redis.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, Protocol

from sluice_core.errors import CallerError, Conflict, Forbidden, NotFound, PeerError
from sluice_core.process.logs import current_request
from sluice_core.store.keys import Keys
from sluice_core.store.operation import Operation, Script, decoded, scripted, timed_script
from sluice_core.store.store import Store
from sluice_motif_control.messages import MotifAnswer, MotifCall, MotifDaemon

#: Seconds after which a daemon that says nothing is gone.
LIFE: Final = 10.0
#: Seconds between two announcements.
PERIOD: Final = 2.0

#: KEYS: when daemons were seen, what they said.  ARGV: name, document.
_ANNOUNCE: Final = timed_script("""
redis.call('ZADD', KEYS[1], now, ARGV[1])
redis.call('HSET', KEYS[2], ARGV[1], ARGV[2])
return 1
""")

#: KEYS: as above.  ARGV: seconds of a life, whether those that are gone are wanted.  Answers name, document, ….
_FIND: Final = timed_script("""
local first, last = now - tonumber(ARGV[1]), '+inf'
if ARGV[2] == '1' then first, last = '-inf', '(' .. string.format('%.6f', now - tonumber(ARGV[1])) end
local found = {}
for _, name in ipairs(redis.call('ZRANGEBYSCORE', KEYS[1], first, last)) do
  found[#found + 1] = name
  found[#found + 1] = redis.call('HGET', KEYS[2], name) or ''
end
return found
""")


def announce(keys: Keys, daemon: MotifDaemon) -> Operation[bool]:
    """Announce a daemon that runs."""
    return scripted(_ANNOUNCE, _names(keys), (daemon.name, daemon.encode()), bool)


def withdraw(keys: Keys, name: str) -> Operation[bool]:
    """Withdraw the announcement of a daemon that ends."""
    seen, said = _names(keys)
    commands = (("ZREM", seen, name), ("HDEL", said, name))
    return Operation(commands, lambda replies: bool(replies[0]), atomic=True)


def live_daemons(keys: Keys, life: float = LIFE) -> Operation[list[MotifDaemon]]:
    """The daemons that run."""

    def parse(reply: list[bytes]) -> list[MotifDaemon]:
        pairs = zip(reply[::2], reply[1::2], strict=True)
        found = (decoded(MotifDaemon, name.decode(), raw) for name, raw in pairs)
        return [one for one in found if one is not None]

    return scripted(_FIND, _names(keys), (str(life), "0"), parse)


def lost_daemons(keys: Keys, life: float = LIFE) -> Operation[list[str]]:
    """The names of those that did not withdraw, and are silent."""

    def parse(reply: list[Any]) -> list[str]:
        return [name.decode() for name in reply[::2]]

    return scripted(_FIND, _names(keys), (str(life), "1"), parse)


def _names(keys: Keys) -> tuple[str, str]:
    return keys.motif_daemons_seen, keys.motif_daemons


#: Seconds for which a caller waits.
TIMEOUT: Final = 10.0
#: Calls that wait; more are refused.
MOST_WAITING: Final = 1000
#: Seconds for which an answer is kept.
ANSWER_LIFE: Final = 60
#: Seconds that one blocking command waits in Redis, below the time-out of the store.
_SLICE: Final = 2.0
_ERRORS: Final = {403: Forbidden, 404: NotFound, 409: Conflict}

#: KEYS: when daemons were seen, calls.  ARGV: seconds of a daemon's life, document, most calls, seconds to wait.
#: Answers 1, 0 without a daemon, or -1 when too many calls are waiting.
_SEND: Final = timed_script("""
if redis.call('ZCOUNT', KEYS[1], now - tonumber(ARGV[1]), '+inf') == 0 then return 0 end
if redis.call('LLEN', KEYS[2]) >= tonumber(ARGV[3]) then return -1 end
redis.call('LPUSH', KEYS[2], string.format('%.3f ', now + tonumber(ARGV[4])) .. ARGV[2])
redis.call('EXPIRE', KEYS[2], 3600)
return 1
""")

#: KEYS: calls that a daemon has in hand, the answer.  ARGV: the call as it was taken, document, seconds of its life.
#: Answers whether the call was still in hand.
_ANSWER: Final = Script("""
if redis.call('LREM', KEYS[1], 1, ARGV[1]) == 0 then return 0 end
redis.call('LPUSH', KEYS[2], ARGV[2])
redis.call('EXPIRE', KEYS[2], ARGV[3])
return 1
""")


class MotifCalls(Protocol):
    """The calls that a daemon answers; a ``SluiceError`` that it raises is raised at the caller."""

    def attach(self, item: str, template: str, params: Mapping[str, Any], identity: str) -> Mapping[str, Any]:
        """Attach a motif to an item; what the item is then, as of :meth:`show`."""

    def detach(self, item: str, template: str = "") -> Mapping[str, Any]:
        """Detach the motifs of a template, or all; what the item is then."""

    def show(self, item: str) -> Mapping[str, Any]:
        """What is known of an item: its size, whether it is contracted, its motifs, opens and expansions."""

    def expand(self, item: str) -> Mapping[str, Any]:
        """Make the bytes of an item and wait for them; what the item is then."""

    def contract(self, item: str, verify: str = "head") -> Mapping[str, Any]:
        """Give up the bytes of an item; ``outcome``, and what the item is then."""

    def why(self, item: str) -> Mapping[str, Any]:
        """Why an item is contracted or not: whether its bytes could go, what stands in the way, its space."""

    def list_items(self, under: str = "", marker: str = "", limit: int = 100) -> Sequence[Mapping[str, Any]]:
        """Items with motifs whose names begin with ``under``, behind ``marker``, in the order of their names."""

    def contracted(self, under: str) -> Iterator[tuple[str, int]]:
        """The contracted items whose names begin with ``under``, and their plain bytes.

        :raises PeerError: while not all of them are known
        """


class MotifClient:
    """Calls daemons, from threads."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def call(self, verb: str, timeout: float = TIMEOUT, **arguments: Any) -> Any:
        """Call a daemon and wait for the answer.

        :param verb: one of ``messages.VERBS``
        :param timeout: seconds
        :raises PeerError: when no daemon runs, or none answers in time; what was asked may have happened then
        :raises CallerError: what the daemon refused, with its reason
        """
        call = MotifCall(uuid.uuid4().hex, verb, arguments, current_request())
        keys = self._store.keys
        sent = self._store.run(_send(keys, call, timeout))
        if sent <= 0:
            why = "no daemon `sluice-motifs` runs" if sent == 0 else "too many calls wait for daemons `sluice-motifs`"
            raise PeerError(f"motifs: {why}")
        answer = self._wait(call, timeout)
        if answer is None:
            raise PeerError(
                f"no daemon `sluice-motifs` answered within {timeout:g} s; what was asked may have happened"
            )
        if answer.status < 400:
            return answer.result
        if answer.status < 500:
            raise _ERRORS.get(answer.status, CallerError)(answer.reason)
        raise PeerError(answer.reason)

    def _wait(self, call: MotifCall, timeout: float) -> MotifAnswer | None:
        left = timeout
        while left > 0:
            seconds = min(left, _SLICE)
            raw = self._store.run(_wait_for_answer(self._store.keys, call.id, seconds))
            if raw is not None:
                return decoded(MotifAnswer, call.id, raw)
            left -= seconds
        return None


def _send(keys: Keys, call: MotifCall, timeout: float) -> Operation[int]:
    names = (keys.motif_daemons_seen, keys.motif_calls)
    return scripted(_SEND, names, (str(LIFE), call.encode(), MOST_WAITING, str(timeout)), int)


def _wait_for_answer(keys: Keys, call_id: str, seconds: float) -> Operation[bytes | None]:
    command = ("BLPOP", keys.motif_answer(call_id), seconds)
    return Operation((command,), lambda replies: replies[0][1] if replies[0] else None)


def claim_call(keys: Keys, daemon: str, seconds: float) -> Operation[tuple[bytes, bool] | None]:
    """Claim the call that waits longest: its bytes, and whether its caller has given up; None without one.

    :param seconds: to wait for one
    """

    def parse(replies: list[Any]) -> tuple[bytes, bool] | None:
        taken, (whole, micros) = replies
        if taken is None:
            return None
        until = float(taken.partition(b" ")[0])
        return taken, int(whole) + int(micros) / 1e6 > until

    commands = (
        ("BLMOVE", keys.motif_calls, keys.motif_calls_taken(daemon), "RIGHT", "LEFT", seconds),
        ("TIME",),
    )
    return Operation(commands, parse)


def taken_call(taken: bytes) -> MotifCall:
    """Decode what :func:`claim_call` has claimed.

    :raises DecodeError: when it is none
    """
    return MotifCall.decode(taken.partition(b" ")[2])


def calls_in_hand(keys: Keys, daemon: str) -> Operation[list[bytes]]:
    """The calls that a daemon has claimed and not answered."""
    return Operation((("LRANGE", keys.motif_calls_taken(daemon), 0, -1),), lambda replies: list(replies[0]))


def answer_call(keys: Keys, daemon: str, taken: bytes, call_id: str, answer: MotifAnswer) -> Operation[bool]:
    """Answer a call; False when another daemon has answered it."""
    names = (keys.motif_calls_taken(daemon), keys.motif_answer(call_id))
    return scripted(_ANSWER, names, (taken, answer.encode(), ANSWER_LIFE), bool)


def drop_call(keys: Keys, daemon: str, taken: bytes) -> Operation[bool]:
    """Forget a call that nobody waits for."""
    return Operation((("LREM", keys.motif_calls_taken(daemon), 1, taken),), lambda replies: bool(replies[0]))
