"""The log of events: a capped stream in Redis, whose ids are the order of events and the cursors of its readers.

No source of events can displace the events of other sources, however many it logs:

* An event whose kind, node, policy and subject equal those of one that the source has logged within
  :attr:`EventLimits.repeat` is a repeat, and is left out.
* Each source has a token bucket: :attr:`EventLimits.burst` events at once, and one more every
  :attr:`EventLimits.refill` seconds.
* The number of events of a source that were left out is logged as an event of its own, at most every
  :attr:`EventLimits.pause` seconds.  The next append of events by any process does that for all sources.

With the defaults a source that logs without end adds 42 entries an hour, in a week a third of the log.  Sources that
log nothing are deleted.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from dataclasses import astuple, dataclass, replace
from hashlib import blake2b
from typing import Any, Final

from sluice_core.errors import DecodeError
from sluice_core.messages.events import EVENTS_LEFT_OUT, KINDS, Event
from sluice_core.store.change_stream import LONGEST_BLOCK, stream_fields
from sluice_core.store.keys import Keys
from sluice_core.store.operation import Command, Operation, Script, nothing, scripted

log = logging.getLogger(__name__)

#: The id that is less than every event's.
FIRST: Final = "0-0"
_LONGEST_TEXT: Final = 1000
_EVENT: Final = b"event"


@dataclass(frozen=True, slots=True)
class EventLimits:
    """``length`` of the stream, ``burst`` of each source; seconds for ``repeat``, ``refill`` of a token, ``pause``."""

    length: int = 20_000
    burst: int = 50
    repeat: float = 3600.0
    refill: float = 120.0
    pause: float = 300.0


LIMITS: Final = EventLimits()

#: Append events.
#:
#: KEYS: stream, sources.  ARGV: unix time, the limits in their order, kind and severity of the event that counts the
#: omitted events; then for each event its source, a digest that identifies repeats (empty: it is never a repeat), its
#: node, and its document.
#:
#: A source is kept as its ``tokens`` ``at`` some time, ``seen`` (digest → time of the last logged event), ``left`` (how
#: many were left out since the last count was logged), ``since`` and ``node`` of these.  Field "" has the time of the
#: last check of all sources.
APPEND: Final = Script("""
local stream, sources = KEYS[1], KEYS[2]
local now, length, burst = tonumber(ARGV[1]), ARGV[2], tonumber(ARGV[3])
local again, refill, pause = tonumber(ARGV[4]), tonumber(ARGV[5]), tonumber(ARGV[6])

local function read(raw)
  local good, state = pcall(cjson.decode, raw or '')
  if not good or type(state) ~= 'table' or type(state.seen) ~= 'table' then
    state = {tokens = burst, at = now, seen = {}, left = 0, since = 0, node = ''}
  end
  state.tokens = math.min(burst, state.tokens + math.max(0, now - state.at) / refill)
  state.at = now
  for digest, at in pairs(state.seen) do
    if math.abs(now - at) >= again then state.seen[digest] = nil end
  end
  return state
end

local function add(document)
  redis.call('XADD', stream, 'MAXLEN', '~', length, '*', 'event', document)
end

local function say_left_out(source, state)
  if state.left == 0 or math.abs(now - state.since) < pause then return end
  local text = string.format('%.0f more events of `%s` were left out', state.left, source)
  add(cjson.encode({v = 1, at = now, kind = ARGV[7], severity = ARGV[8], text = text, source = source,
                    node = state.node, fields = {left_out = state.left, since = state.since}}))
  state.left = 0
end

local function write(source, state)
  redis.call('HSET', sources, source, cjson.encode(state))
end

for i = 9, #ARGV, 4 do
  local source, digest = ARGV[i], ARGV[i + 1]
  local state = read(redis.call('HGET', sources, source))
  say_left_out(source, state)
  if (digest ~= '' and state.seen[digest]) or state.tokens < 1 then
    if state.left == 0 then state.since = now end
    state.left = state.left + 1
    state.node = ARGV[i + 2]
  else
    state.tokens = state.tokens - 1
    if digest ~= '' then state.seen[digest] = now end
    add(ARGV[i + 3])
  end
  write(source, state)
end

if math.abs(now - tonumber(redis.call('HGET', sources, '') or '0')) >= pause then
  local all = redis.call('HGETALL', sources)
  for i = 1, #all, 2 do
    if all[i] ~= '' then
      local state = read(all[i + 1])
      say_left_out(all[i], state)
      if state.left == 0 and state.tokens >= burst and not next(state.seen) then
        redis.call('HDEL', sources, all[i])
      else
        write(all[i], state)
      end
    end
  end
  redis.call('HSET', sources, '', string.format('%.3f', now))
end
return 0
""")


@dataclass(frozen=True, slots=True)
class EventBatch:
    """Some events in their order; ``last`` is the id of the last entry that was read, ``full`` whether more may follow.

    ``last`` is the given id when nothing was read.
    """

    events: tuple[Event, ...]
    last: str
    full: bool


def append_events(
    keys: Keys, events: Sequence[Event], limits: EventLimits = LIMITS, now: float | None = None
) -> Operation[None]:
    """Log ``events``; without any, only count what was left out before.

    :param now: unix time
    """
    moment = time.time() if now is None else now
    given = (f"{moment:.3f}", *astuple(limits), EVENTS_LEFT_OUT, KINDS[EVENTS_LEFT_OUT][0])
    each = [
        word
        for event in events
        for word in (event.source or "unknown", _digest(event.repeats), event.node, _shortened(event).encode())
    ]
    return scripted(APPEND, (keys.events, keys.event_sources), (*given, *each), nothing)


def events_after(keys: Keys, after: str, count: int, block_ms: int = 0) -> Operation[EventBatch]:
    """Return at most ``count`` events behind the id ``after``, waiting ``block_ms`` for the first.

    Undecodable events are left out.

    :param block_ms: milliseconds, at most :data:`~sluice_core.store.change_stream.LONGEST_BLOCK`
    """
    waiting: Command = ("BLOCK", min(block_ms, LONGEST_BLOCK)) if block_ms > 0 else ()

    def parse(replies: list[Any]) -> EventBatch:
        entries = replies[0][0][1] if replies[0] else []
        found = [_parse_event(entry.decode(), raw) for entry, raw in entries]
        last = entries[-1][0].decode() if entries else after
        return EventBatch(tuple(one for one in found if one is not None), last, len(entries) == count)

    read = ("XREAD", "COUNT", count, *waiting, "STREAMS", keys.events, after)
    return Operation((read,), parse, blocking=block_ms > 0)


def id_before(at: float) -> str:
    """The largest id of events that were logged before the unix time ``at``."""
    milliseconds = round(at * 1000)
    return f"{milliseconds - 1}-{2**64 - 1}" if milliseconds > 0 else FIRST


def _parse_event(entry: str, raw: Any) -> Event | None:
    try:
        return replace(Event.decode(stream_fields(raw)[_EVENT]), id=entry)
    except (DecodeError, KeyError) as error:
        log.error("event `%s` cannot be decoded: %s", entry, error)
        return None


def _digest(text: str) -> str:
    return text and blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()


def _shortened(event: Event) -> Event:
    text = event.text if len(event.text) <= _LONGEST_TEXT else f"{event.text[:_LONGEST_TEXT]}…"
    return replace(event, text=text)
