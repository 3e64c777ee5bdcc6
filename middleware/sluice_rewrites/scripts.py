"""The Redis scripts of rewrite jobs, each atomic; :mod:`operations` has the theory.

Time is that of Redis, since rewriters run on many machines.
"""

from __future__ import annotations

from typing import Final

from sluice_core.jobs import lease_script
from sluice_core.store.operation import timed_script

#: KEYS: jobs, units to do of the job, progress.  ARGV: id, document.
CREATE: Final = timed_script("""
if redis.call('HSETNX', KEYS[1], ARGV[1], ARGV[2]) == 0 then return 0 end
redis.call('RPUSH', KEYS[2], '')
redis.call('HSET', KEYS[3], 'started', string.format('%.3f', now), 'listings', 1)
return 1
""")

#: KEYS: jobs, progress, requests.  ARGV: id, request, the new state, counter or field to set, its value.
#: Returns whether the job was collecting.
END_COLLECTING: Final = timed_script("""
redis.call('ZREM', KEYS[3], ARGV[2])
local document = redis.call('HGET', KEYS[1], ARGV[1])
if not document or cjson.decode(document).state ~= 'collecting' then return 0 end
redis.call('HSET', KEYS[1], ARGV[1], (string.gsub(document, '"state":"%a+"', '"state":"' .. ARGV[3] .. '"', 1)))
redis.call('HSET', KEYS[2], ARGV[4], ARGV[5])
if ARGV[3] == 'failed' then redis.call('HSET', KEYS[2], 'ended', string.format('%.3f', now)) end
return 1
""")

#: KEYS: jobs, to do, leases, markers, progress.  ARGV: id, seconds of a lease, state of a running job.
#: Returns path, marker, token; or nothing.
CLAIM: Final = lease_script("""
local document = redis.call('HGET', KEYS[1], ARGV[1])
if not document or cjson.decode(document).state ~= ARGV[3] then return false end
local unit = claim_lease(KEYS[3], ARGV[2], KEYS[2])
if not unit then return false end
local token = redis.call('HINCRBY', KEYS[5], 'token', 1)
local known = redis.call('HGET', KEYS[4], unit)
known = known and cjson.decode(known) or {marker = ''}
known.token = token
redis.call('HSET', KEYS[4], unit, cjson.encode(known))
return {unit, known.marker, string.format('%.0f', token)}
""")

#: KEYS: jobs, to do, leases, markers, progress, failures.  ARGV: id, path of the unit, token, seconds of a lease
#: (0: the unit is done, -1: it is released), marker (empty: unchanged), failures that are kept, number of words on
#: units to add, those (path, objects, bytes; empty where unknown), number of failures, those, then pairs of a
#: counter and its increment.
#: Returns the job's state as the operator set it, or nothing when the claim is no longer valid.  A job without
#: remaining units is done.
REPORT: Final = lease_script("""
local id, unit, seconds, at = ARGV[1], ARGV[2], tonumber(ARGV[4]), 7
local function take()
  local list, count = {}, tonumber(ARGV[at])
  for i = at + 1, at + count do list[#list + 1] = ARGV[i] end
  at = at + count + 1
  return list
end
local units, failures = take(), take()
local document, known = redis.call('HGET', KEYS[1], id), redis.call('HGET', KEYS[4], unit)
if not document or not known then return false end
known = cjson.decode(known)
if string.format('%.0f', known.token) ~= ARGV[3] then return false end
for i = 1, #units, 3 do
  redis.call('RPUSH', KEYS[2], units[i])
  if units[i + 1] ~= '' then
    local held = {marker = '', token = 0, objects = units[i + 1], bytes = units[i + 2]}
    redis.call('HSET', KEYS[4], units[i], cjson.encode(held))
  end
end
for _, one in ipairs(failures) do redis.call('LPUSH', KEYS[6], one) end
if #failures > 0 then redis.call('LTRIM', KEYS[6], 0, ARGV[6] - 1) end
local looked = {seen = 0, seen_bytes = 0}
for i = at, #ARGV, 2 do
  redis.call('HINCRBY', KEYS[5], ARGV[i], ARGV[i + 1])
  if looked[ARGV[i]] then looked[ARGV[i]] = tonumber(ARGV[i + 1]) end
end
for found, done in pairs({objects = 'seen', bytes = 'seen_bytes'}) do
  if known[found] then
    local left = tonumber(known[found]) - looked[done]
    if left < 0 or seconds == 0 then
      redis.call('HINCRBY', KEYS[5], found, string.format('%.0f', 0 - left))
      left = 0
    end
    known[found] = string.format('%.0f', left)
  end
end
renew_lease(KEYS[3], unit, seconds)
if seconds == 0 then
  redis.call('HDEL', KEYS[4], unit)
else
  if seconds < 0 then known.token = redis.call('HINCRBY', KEYS[5], 'token', 1) end
  if ARGV[5] ~= '' then known.marker = ARGV[5] end
  redis.call('HSET', KEYS[4], unit, cjson.encode(known))
end
if redis.call('LLEN', KEYS[2]) == 0 and redis.call('ZCARD', KEYS[3]) == 0 then
  redis.call('HSET', KEYS[5], 'ended', string.format('%.3f', now))
  redis.call('HSET', KEYS[1], id, (string.gsub(document, '"state":"%a+"', '"state":"done"', 1)))
end
return cjson.decode(document).state
""")

#: KEYS: jobs, to do, leases, markers, progress, requests for accounts.  ARGV: id, the new state, the states from which
#: that is possible.  Returns the document, or nothing when the job does not exist, is in another state or has ended.  A
#: job that is to run and does not know all accounts yet collects them.
CHANGE_STATE: Final = timed_script("""
local document = redis.call('HGET', KEYS[1], ARGV[1])
if not document or redis.call('HGET', KEYS[5], 'ended') then return false end
local job, fits = cjson.decode(document), false
for i = 3, #ARGV do fits = fits or job.state == ARGV[i] end
if not fits then return false end
local state, request = ARGV[2], job.request or ''
if state == 'running' and request ~= '' and not redis.call('HGET', KEYS[5], 'accounts') then state = 'collecting' end
local changed = string.gsub(document, '"state":"%a+"', '"state":"' .. state .. '"', 1)
redis.call('HSET', KEYS[1], ARGV[1], changed)
local since = redis.call('HGET', KEYS[5], 'paused_at')
if ARGV[2] == 'paused' and not since then
  redis.call('HSET', KEYS[5], 'paused_at', string.format('%.3f', now))
elseif ARGV[2] ~= 'paused' and since then
  redis.call('HINCRBYFLOAT', KEYS[5], 'paused', string.format('%.3f', now - tonumber(since)))
  redis.call('HDEL', KEYS[5], 'paused_at')
end
if ARGV[2] == 'cancelled' then
  redis.call('DEL', KEYS[2], KEYS[3], KEYS[4])
  redis.call('ZREM', KEYS[6], request)
  redis.call('HSET', KEYS[5], 'ended', string.format('%.3f', now))
end
return changed
""")

#: KEYS: the time line.  ARGV: seconds that the work takes at the rate, seconds of burst.  Returns seconds to wait.
RESERVE: Final = timed_script("""
local at = math.max(now - tonumber(ARGV[2]), tonumber(redis.call('GET', KEYS[1]) or '0'))
redis.call('SET', KEYS[1], string.format('%.6f', at + tonumber(ARGV[1])), 'EX', 86400)
return string.format('%.6f', math.max(0, at - now))
""")
