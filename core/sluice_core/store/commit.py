"""The commit of a draft: one script, which applies it as a whole or not at all."""

from __future__ import annotations

import time
import uuid
import zlib
from collections.abc import Iterable
from typing import Any, Final

from sluice_core.errors import Conflict, Fenced
from sluice_core.messages.policies import Change, Policy, Target, policy_of_assignment
from sluice_core.store.keys import Keys
from sluice_core.store.operation import Operation, Script, scripted
from sluice_core.store.records import Committed, Draft

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
#: A version is the number of the commit that last wrote the record, counted in field ``*`` of the
#: versions hash, so that a record that was dropped and created again never has an old version.  The version of a scope
#: changes with each static policy that is written for it.
#: A fence names a slot and the ownership under which the draft was made; another owner of the slot refuses the draft.
#: A dropped policy takes all of its assignments with it, also those that its actor set meanwhile; a policy that is
#: dropped and put is replaced, and its old assignments are removed.
#:
#: The documents that a change of policies, uploads and entries replaced go into the stream of the past, in parts of 500
#: (``kind/id``, document or nothing), each with the epoch of the change before it, which shows a reader how far back
#: the stream reaches.  The version of ``config/*`` is that of the last such change.
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

#: Changes that are kept for disconnected agents; an agent that missed more reloads everything.
STREAM_LENGTH: Final = 10_000
_SCOPES: Final = 1 << 16


def commit(keys: Keys, draft: Draft) -> Operation[Committed]:
    """Apply ``draft`` as a whole or not at all.

    :raises Conflict: naming the record that does not have the expected version
    :raises Fenced: naming the slot that another actor host owns now
    """
    named = sorted({one.id for one in draft.policies} | set(draft.policy_drops))
    touched = {one.policy for one in draft.puts} | {one.id for one in draft.policies}
    touched.update(map(policy_of_assignment, draft.drops))
    change = Change(
        0, "", time.time(), draft.by, draft.puts, draft.drops, tuple(named), draft.uploads, draft.upload_drops,
        draft.entries, draft.entry_drops,
    )  # fmt: skip
    lists: tuple[list[tuple[str | bytes | int, ...]], ...] = (
        sorted(draft.expect.items()),
        [(one.id, one.encode()) for one in draft.puts],
        [(name,) for name in draft.drops],
        [(one.id, one.encode()) for one in draft.policies],
        [(name, f"{_glob_quoted(name)}.*") for name in draft.policy_drops],
        [(one.policy, one.encode()) for one in draft.states],
        [(name,) for name in sorted(touched - (set(draft.policy_drops) - {one.id for one in draft.policies}))],
        [(one.key, one.encode()) for one in draft.uploads],
        [(name,) for name in draft.upload_drops],
        [(one.key, one.encode()) for one in draft.entries],
        [(name,) for name in draft.entry_drops],
        sorted(draft.fence.items()),
        [(name,) for name in _static_scopes(draft.policies)],
    )
    arguments: list[str | bytes | int] = [uuid.uuid4().hex, draft.history, int(draft.moves), STREAM_LENGTH]
    arguments.append(change.encode())
    for items in lists:
        arguments.append(len(items))
        for item in items:
            arguments.extend(item)
    names = (
        keys.history, keys.epoch, keys.assignments, keys.policies, keys.states, keys.versions,
        keys.epochs, keys.changes, keys.observed, keys.watched, keys.uploads, keys.registry,
        keys.owners, keys.past,
    )  # fmt: skip
    return scripted(COMMIT, names, arguments, _parse_commit)


def scope_version(target: Target) -> str:
    """Name of the version that changes when a static policy for ``target`` is written, for ``Draft.expect``.

    Some scopes share one, so that their number is bounded: a change of another scope may refuse an attempt.
    """
    scope = f"{target.level}/{target.select}/{target.name}".encode()
    return f"scope/{zlib.crc32(scope) % _SCOPES:04x}"


def _static_scopes(policies: Iterable[Policy]) -> list[str]:
    targets = (one.plan.get("target") for one in policies if not one.dynamic)
    return sorted({scope_version(Target.from_data(target)) for target in targets if target})


def _glob_quoted(text: str) -> str:
    return "".join(f"\\{char}" if char in "*?[]\\^-" else char for char in text)


def _parse_commit(reply: list[Any]) -> Committed:
    if reply[0] == b"ok":
        return Committed(reply[1].decode(), int(reply[2]), int(reply[3]))
    name, actual = reply[1].decode(), reply[2].decode()
    if reply[0] == b"fenced":
        raise Fenced(name, actual)
    if name == "history":
        raise Conflict(f"history is `{actual}` now, not the expected one")
    raise Conflict(f"`{name}` is at version {actual} now, not the expected one")
