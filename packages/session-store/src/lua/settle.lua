-- Purpose: settle a run of a session that has ended. Move the session to the state that the run left, unless another run was first.
-- Guarantee: atomic. The session moves only from the snapshot that the run began with, and only to one that no sweep may have taken.
-- The same call made twice settles once, whenever the second arrives.
-- KEYS[1]: sessionstate:<namespace>[:<hint>]   KEYS[2]: svc:sessions:index:<namespace>   KEYS[3]: svc:sessions:snapshots
-- KEYS[4]: svc:sessions:attempt:<session id of the execution>
-- ARGV[1]: `stored`: the run left a new snapshot; `unchanged`: the state is what it began with; `failed`: it could not be
--   restored
-- ARGV[2]: id of the session   ARGV[3]: id of the snapshot that the run began with, or empty   ARGV[4]: life of a session in ms
-- ARGV[5]: ms in which any run must be over   ARGV[6]: member of KEYS[3] for the snapshot that the run may have stored
-- ARGV[7], ARGV[8], ARGV[9]: its id, storage session and size
-- ARGV[10]: failed restores in a row that end a session   ARGV[11]: ms between the first and the last of these, at least
-- Returns: `current`; `conflict`: another state is current; `gone`: the session was removed, the execution has begun
--   again, or the run took too long; `failed`.
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local kind = ARGV[1]
local record = redis.call('HMGET', KEYS[1], 'id', 'snapshot_id', 'snapshot_session', 'hint', 'snapshot_size')
local known = redis.call('ZSCORE', KEYS[3], ARGV[6])

-- From now on the sweep may delete the new snapshot.
local function give_up_new()
  redis.call('ZADD', KEYS[3], 0, ARGV[6])
end
-- Other runs may have just started from the old snapshot, so it stays until they must be over.
local function release_old()
  if record[2] then
    redis.call('ZADD', KEYS[3], now + ARGV[5], record[3] .. '/' .. record[2] .. '/' .. KEYS[1])
  end
end

local attempt = redis.call('GET', KEYS[4])
-- The same call was made before: its reply was lost, or arrived while this call was on its way.
if attempt == ARGV[6] .. ' settled' then
  return 'current'
end
if attempt == ARGV[6] .. ' failed' then
  return 'failed'
end
if attempt ~= ARGV[6] then
  give_up_new()
  return 'gone'
end
-- The session is another one by now, or the snapshot comes so late that a sweep may have deleted it.
if record[1] ~= ARGV[2] or (kind == 'stored' and (not known or tonumber(known) <= now)) then
  give_up_new()
  return 'gone'
end
if (record[2] or '') ~= ARGV[3] then
  give_up_new()
  return 'conflict'
end
if kind == 'failed' then
  redis.call('SET', KEYS[4], ARGV[6] .. ' failed', 'KEEPTTL')
  give_up_new()
  redis.call('HSETNX', KEYS[1], 'failing_since', now)
  local failures = redis.call('HINCRBY', KEYS[1], 'failures', 1)
  local since = tonumber(redis.call('HGET', KEYS[1], 'failing_since'))
  if failures >= tonumber(ARGV[10]) and now - since >= tonumber(ARGV[11]) then
    redis.call('DEL', KEYS[1])
    redis.call('ZREM', KEYS[2], record[4])
    release_old()
  end
  return kind
end
redis.call('SET', KEYS[4], ARGV[6] .. ' settled', 'KEEPTTL')
redis.call('HDEL', KEYS[1], 'failures', 'failing_since')
redis.call('HSET', KEYS[1], 'last_used_at', now)
redis.call('PEXPIRE', KEYS[1], ARGV[4])
redis.call('ZADD', KEYS[2], now, record[4])
redis.call('PEXPIRE', KEYS[2], ARGV[4])
if kind == 'unchanged' then
  give_up_new()
  return 'current'
end
release_old()
redis.call('HSET', KEYS[1], 'before_id', record[2] or '', 'before_session', record[3] or '', 'before_size', record[5] or '')
redis.call('HSET', KEYS[1], 'snapshot_id', ARGV[7], 'snapshot_session', ARGV[8], 'snapshot_size', ARGV[9])
redis.call('ZADD', KEYS[3], now + ARGV[4], ARGV[6])
return 'current'
