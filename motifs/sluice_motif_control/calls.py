"""Calls from the API to the daemons `sluice-motifs`, through Redis: the API has no other way to a node.

Theory of operation

* A running daemon announces itself every few seconds.  Without one a call is refused at once.
* A call is put into a bounded list.  A free daemon moves it to a list of its own, processes it, and in one
  step removes it from there and writes the answer, which expires by itself.  The caller waits for the answer's key.
* A call whose caller has stopped waiting is dropped by the daemon that claims it.
* The claimed calls of a daemon that was killed are answered by another daemon, with an error that says so: a call may
  have had its effect, and only the caller can decide whether to repeat it.

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

#: Seconds after which a silent daemon counts as ended.
LIFE: Final = 10.0
#: Seconds between two announcements.
PERIOD: Final = 2.0

#: KEYS: when daemons were seen, their announcements.  ARGV: name, document.
_ANNOUNCE: Final = timed_script("""
redis.call('ZADD', KEYS[1], now, ARGV[1])
redis.call('HSET', KEYS[2], ARGV[1], ARGV[2])
return 1
""")

#: KEYS: as above.  ARGV: seconds of a life, 1 for the silent ones.  Returns name, document, ….
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
    """Announce a running daemon."""
    return scripted(_ANNOUNCE, _names(keys), (daemon.name, daemon.encode()), bool)


def withdraw(keys: Keys, name: str) -> Operation[bool]:
    """Withdraw the announcement of a daemon that stops."""
    seen, said = _names(keys)
    commands = (("ZREM", seen, name), ("HDEL", said, name))
    return Operation(commands, lambda replies: bool(replies[0]), atomic=True)


def live_daemons(keys: Keys, life: float = LIFE) -> Operation[list[MotifDaemon]]:
    """The running daemons."""

    def parse(reply: list[bytes]) -> list[MotifDaemon]:
        pairs = zip(reply[::2], reply[1::2], strict=True)
        found = (decoded(MotifDaemon, name.decode(), raw) for name, raw in pairs)
        return [one for one in found if one is not None]

    return scripted(_FIND, _names(keys), (str(life), "0"), parse)


def lost_daemons(keys: Keys, life: float = LIFE) -> Operation[list[str]]:
    """The names of daemons that are silent and did not withdraw."""

    def parse(reply: list[Any]) -> list[str]:
        return [name.decode() for name in reply[::2]]

    return scripted(_FIND, _names(keys), (str(life), "1"), parse)


def _names(keys: Keys) -> tuple[str, str]:
    return keys.motif_daemons_seen, keys.motif_daemons


#: Seconds for which a caller waits.
TIMEOUT: Final = 10.0
#: The most waiting calls; further ones are refused.
MOST_WAITING: Final = 1000
#: Seconds for which an answer is kept.
ANSWER_LIFE: Final = 60
#: Seconds that one blocking command waits in Redis, below the time-out of the store.
_SLICE: Final = 2.0
_ERRORS: Final = {403: Forbidden, 404: NotFound, 409: Conflict}

#: KEYS: when daemons were seen, calls.  ARGV: seconds of a daemon's life, document, most calls, seconds to wait.
#: Returns 1, 0 without a daemon, or -1 when too many calls are waiting.
_SEND: Final = timed_script("""
if redis.call('ZCOUNT', KEYS[1], now - tonumber(ARGV[1]), '+inf') == 0 then return 0 end
if redis.call('LLEN', KEYS[2]) >= tonumber(ARGV[3]) then return -1 end
redis.call('LPUSH', KEYS[2], string.format('%.3f ', now + tonumber(ARGV[4])) .. ARGV[2])
redis.call('EXPIRE', KEYS[2], 3600)
return 1
""")

#: KEYS: the calls that a daemon has claimed, the answer.  ARGV: the claimed call, document, seconds of its life.
#: Returns whether the call was still claimed.
_ANSWER: Final = Script("""
if redis.call('LREM', KEYS[1], 1, ARGV[1]) == 0 then return 0 end
redis.call('LPUSH', KEYS[2], ARGV[2])
redis.call('EXPIRE', KEYS[2], ARGV[3])
return 1
""")


class MotifCalls(Protocol):
    """The calls that a daemon answers; a ``SluiceError`` that it raises is raised in the caller."""

    def attach(self, item: str, template: str, params: Mapping[str, Any], identity: str) -> Mapping[str, Any]:
        """Attach a motif to an item; return the item's state, as :meth:`show` does."""

    def detach(self, item: str, template: str = "") -> Mapping[str, Any]:
        """Detach the motifs of a template, or all; return the item's state."""

    def show(self, item: str) -> Mapping[str, Any]:
        """The state of an item: its size, whether it is contracted, its motifs, opens and expansions."""

    def expand(self, item: str) -> Mapping[str, Any]:
        """Make the bytes of an item and wait for them; return the item's state."""

    def contract(self, item: str, verify: str = "head") -> Mapping[str, Any]:
        """Contract an item; return ``outcome``, and the item's state."""

    def why(self, item: str) -> Mapping[str, Any]:
        """Why an item is contracted or not: whether it could be contracted, the obstacle, its space."""

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
        :raises PeerError: without a running daemon, or without an answer in time, when the call may have had its effect
        :raises CallerError: the daemon's refusal, with its reason
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
                f"no daemon `sluice-motifs` answered within {timeout:g} s; the call may have had its effect"
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
    """Claim the call that waits longest: its bytes, and whether its caller still waits; None without a call.

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
    """Decode a call that :func:`claim_call` has claimed.

    :raises DecodeError: when it is no call
    """
    return MotifCall.decode(taken.partition(b" ")[2])


def calls_in_hand(keys: Keys, daemon: str) -> Operation[list[bytes]]:
    """The calls that a daemon has claimed and not answered."""
    return Operation((("LRANGE", keys.motif_calls_taken(daemon), 0, -1),), lambda replies: list(replies[0]))


def answer_call(keys: Keys, daemon: str, taken: bytes, call_id: str, answer: MotifAnswer) -> Operation[bool]:
    """Answer a call; return False when another daemon has answered it."""
    names = (keys.motif_calls_taken(daemon), keys.motif_answer(call_id))
    return scripted(_ANSWER, names, (taken, answer.encode(), ANSWER_LIFE), bool)


def drop_call(keys: Keys, daemon: str, taken: bytes) -> Operation[bool]:
    """Remove a call that no caller waits for."""
    return Operation((("LREM", keys.motif_calls_taken(daemon), 1, taken),), lambda replies: bool(replies[0]))
