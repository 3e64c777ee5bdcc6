"""The Lua scripts that Redis runs for us: one script is one atomic change.

Redis does not undo what a script wrote before it failed, so every check comes first.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import Final


@dataclass(frozen=True, slots=True)
class Script:
    """A script's source and the digest that it is called by."""

    source: str
    #: What EVALSHA names it by.
    sha: str = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "sha", hashlib.sha1(self.source.encode(), usedforsecurity=False).hexdigest())


def timed_script(source: str) -> Script:
    """A script that knows ``now``, unix seconds of Redis' clock: who uses it runs on many machines."""
    return Script(
        f"""
local time = redis.call('TIME')
local now = tonumber(time[1]) + tonumber(time[2]) / 1000000
{source.lstrip()}"""
    )


#: Apply one draft.
#:
#: ARGV: id for a new history, expected history (empty: any), whether the epoch moves (0, 1), stream
#: length, change document; then lists, each after its length: expected versions (name, version),
#: assignments (id, document), dropped assignments (id), policies (id, document), dropped policies
#: (id, glob of its assignments' ids), states (id, document), touched policies (id), uploads (keyword,
#: document), dropped uploads (keyword), entries (kind/name, document), dropped entries (kind/name),
#: fences (slot, ownership), scopes of static policies (name of a version).
#:
#: Answers ``["ok", history, epoch, version]``, ``["conflict", name, found]`` or ``["fenced", slot, found]``.
#:
#: A version is the number of the commit that last wrote the thing, counted in field ``*`` of the
#: versions hash, so that something dropped and made again never has an old version.  That of a scope moves with
#: each static policy that is written for it.
#: A fence names a slot and the ownership under which the draft was made; any other found there refuses it.
#: A dropped policy takes all of its assignments with it, also those that its actor set meanwhile; one that is
#: dropped and put is replaced, with nothing left of what the old one set.
#:
#: What a change of policies, uploads and entries replaced goes into the stream of the past, in parts of 500
#: (``kind/id``, document or nothing), each with the epoch of the change before it: so whoever reads it knows how
#: far back it reaches.  The version of ``config/*`` is that of the last such change.
COMMIT: Final = Script("""
local history_key, epoch_key, assignments, policies, states, versions, epochs, changes, observed, watched, uploads =
  KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6], KEYS[7], KEYS[8], KEYS[9], KEYS[10], KEYS[11]
local registry, owners, past = KEYS[12], KEYS[13], KEYS[14]
local at = 6
local function take(width)
  local list, count = {}, tonumber(ARGV[at])
  at = at + 1
  for _ = 1, count do
    list[#list + 1] = {ARGV[at], ARGV[at + width - 1]}
    at = at + width
  end
  return list
end
local expected, puts, drops, wanted, unwanted, news, touched, codes, gone, entries, out, fences, scopes =
  take(2), take(2), take(1), take(2), take(2), take(2), take(1), take(2), take(1), take(2), take(1), take(2), take(1)

local history = redis.call('GET', history_key)
local epoch = tonumber(redis.call('GET', epoch_key) or '0')
if ARGV[2] ~= '' and ARGV[2] ~= history then
  return {'conflict', 'history', history or ''}
end
for _, pair in ipairs(fences) do
  local found = redis.call('HGET', owners, pair[1]) or ''
  if found ~= pair[2] then
    return {'fenced', pair[1], found}
  end
end
for _, pair in ipairs(expected) do
  local found = redis.call('HGET', versions, pair[1]) or '0'
  if tonumber(found) ~= tonumber(pair[2]) then
    return {'conflict', pair[1], found}
  end
end

local more, several = {}, #unwanted > 4
if several then
  local leaving = {}
  for _, pair in ipairs(unwanted) do leaving[pair[1]] = true end
  for _, id in ipairs(redis.call('HKEYS', assignments)) do
    if leaving[string.match(string.match(id, '^[^@]*'), '^(.*)%.') or ''] then more[#more + 1] = id end
  end
end
for _, pair in ipairs(several and {} or unwanted) do
  local cursor = '0'
  repeat
    local page = redis.call('HSCAN', assignments, cursor, 'MATCH', pair[2], 'COUNT', 1000)
    cursor = page[1]
    for i = 1, #page[2], 2 do more[#more + 1] = page[2][i] end
  until cursor == '0'
end

if not history then
  history, epoch = ARGV[1], 0
  redis.call('DEL', changes, past)
  redis.call('SET', history_key, history)
  redis.call('SET', epoch_key, 0)
end
if ARGV[3] == '1' then
  epoch = epoch + 1
  local entry = {'history', history, 'change', ARGV[5]}
  if #more > 0 then
    entry[5], entry[6] = 'drops', cjson.encode(more)
  end
  redis.call('XADD', changes, 'MAXLEN', '~', ARGV[4], string.format('%.0f-0', epoch), unpack(entry))
  redis.call('SET', epoch_key, string.format('%.0f', epoch))
end

local version = redis.call('HINCRBY', versions, '*', 1)
local old = {}
local function remember(hash, kind, list)
  for _, one in ipairs(list) do
    old[#old + 1] = kind .. one[1]
    old[#old + 1] = redis.call('HGET', hash, one[1]) or ''
  end
end
remember(policies, 'policy/', wanted)
remember(policies, 'policy/', unwanted)
remember(uploads, 'upload/', codes)
remember(uploads, 'upload/', gone)
remember(registry, 'entry/', entries)
remember(registry, 'entry/', out)
if #old > 0 then
  local last = redis.call('XREVRANGE', past, '+', '-', 'COUNT', 1)[1]
  local before = last and string.match(last[1], '^%d+') or string.format('%.0f', epoch - 1)
  for from = 1, #old, 1000 do
    local id = string.format('%.0f-%d', epoch, (from - 1) / 1000)
    redis.call('XADD', past, 'MAXLEN', '~', ARGV[4], id, 'before', before,
      unpack(old, from, math.min(from + 999, #old)))
  end
  redis.call('HSET', versions, 'config/*', version)
end
local function write(hash, kind, pair)
  redis.call('HSET', hash, pair[1], pair[2])
  redis.call('HSET', versions, kind .. pair[1], version)
end
local function erase(hash, kind, id)
  redis.call('HDEL', hash, id)
  redis.call('HDEL', versions, kind .. id)
end
for _, pair in ipairs(unwanted) do
  erase(policies, 'policy/', pair[1])
  erase(states, 'state/', pair[1])
  redis.call('HDEL', observed, pair[1])
  redis.call('HDEL', epochs, pair[1])
  redis.call('ZREM', watched, pair[1])
end
for _, one in ipairs(drops) do erase(assignments, 'assignment/', one[1]) end
for _, id in ipairs(more) do erase(assignments, 'assignment/', id) end
for _, pair in ipairs(puts) do write(assignments, 'assignment/', pair) end
for _, pair in ipairs(wanted) do write(policies, 'policy/', pair) end
for _, pair in ipairs(news) do write(states, 'state/', pair) end
for _, one in ipairs(gone) do erase(uploads, 'upload/', one[1]) end
for _, pair in ipairs(codes) do write(uploads, 'upload/', pair) end
for _, one in ipairs(out) do erase(registry, 'entry/', one[1]) end
for _, pair in ipairs(entries) do write(registry, 'entry/', pair) end
for _, one in ipairs(scopes) do redis.call('HSET', versions, one[1], version) end
for _, one in ipairs(touched) do redis.call('HSET', epochs, one[1], string.format('%.0f', epoch)) end
return {'ok', history, string.format('%.0f', epoch), version}
""")

#: Adopt what there is now, as a history of its own if there is none (a wiped Redis), and remember who
#: said so.  ARGV: id for a new history, who, when.  Answers ``[history, epoch]``.
ADOPT: Final = Script("""
local history, epoch = redis.call('GET', KEYS[1]), redis.call('GET', KEYS[2]) or '0'
if not history then
  history, epoch = ARGV[1], '0'
  redis.call('DEL', KEYS[5], KEYS[6])
  redis.call('SET', KEYS[1], history)
  redis.call('SET', KEYS[2], epoch)
end
redis.call('SET', KEYS[3], history .. ':' .. epoch)
redis.call('LPUSH', KEYS[4], cjson.encode({history = history, epoch = tonumber(epoch), by = ARGV[2], at = ARGV[3]}))
redis.call('LTRIM', KEYS[4], 0, 99)
return {history, epoch}
""")

#: The digest of an entry of the change stream: sha1 of all its names and values, of each its length and the first
#: ARGV[2] bytes.  ARGV[1] is the entry's id; empty: that of the newest change.  Nothing when it is not in the stream.
DIGEST: Final = Script("""
local id = ARGV[1]
if id == '' then id = (redis.call('GET', KEYS[2]) or '0') .. '-0' end
local found = redis.call('XRANGE', KEYS[1], id, id)[1]
if not found then return '' end
local parts = {}
for i, part in ipairs(found[2]) do
  parts[i] = string.format('%d:', #part) .. string.sub(part, 1, tonumber(ARGV[2]))
end
return redis.sha1hex(table.concat(parts))
""")

#: All policies with their versions, read together: a list of id, document, version.
POLICIES: Final = Script("""
local found, flat = redis.call('HGETALL', KEYS[1]), {}
for i = 1, #found, 2 do
  flat[#flat + 1] = found[i]
  flat[#flat + 1] = found[i + 1]
  flat[#flat + 1] = redis.call('HGET', KEYS[2], 'policy/' .. found[i]) or '0'
end
return flat
""")

#: Compare and set.  KEYS: a hash.  ARGV: field, the bytes that it has, the bytes that it gets.  Answers whether it had
#: them.
REPLACE: Final = Script("""
if redis.call('HGET', KEYS[1], ARGV[1]) ~= ARGV[2] then return 0 end
redis.call('HSET', KEYS[1], ARGV[1], ARGV[3])
return 1
""")
