"""Which daemons `sluice-motifs` run: each says so every few seconds.  Time is that of Redis."""

from __future__ import annotations

from typing import Any, Final

from sluice_core.store.keys import Keys
from sluice_core.store.operation import Operation, decoded, scripted, timed_script
from sluice_motif_control.messages import MotifDaemon

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
