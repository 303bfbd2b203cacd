-- Purpose: begin a run of a session. Create the session if there is none, and return the snapshot that the run starts from.
-- Guarantee: atomic. Until the run must be over, no sweep takes the snapshot that it starts from or the one that it may store.
-- An execution that begins again because its worker died undoes the state that its earlier attempt left: nobody got that response.
-- The same call made twice begins one run, whenever the second arrives.
-- KEYS[1]: sessionstate:<namespace>[:<hint>]   KEYS[2]: svc:sessions:index:<namespace>   KEYS[3]: svc:sessions:snapshots
-- KEYS[4]: svc:sessions:attempt:<session id of the execution>
-- KEYS[5], of a session with a hint: svc:sessions:execution:<namespace>:<session id of the execution>
-- ARGV[1]: hint, or empty   ARGV[2]: id of a new session   ARGV[3]: language   ARGV[4]: life of a session in ms
-- ARGV[5]: ms in which the run must be over   ARGV[6]: member of KEYS[3] for the snapshot that the run may store
-- ARGV[7]: session id of the execution   ARGV[8]: sessionstate:<namespace>   ARGV[9]: maximum sessions of a user
-- Returns: id of the session; id, storage session and size of its snapshot, empty without one.
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local id = redis.call('HGET', KEYS[1], 'id')
if not id then
  id = ARGV[2]
  redis.call('HSET', KEYS[1], 'id', id, 'hint', ARGV[1], 'created_at', now)
  redis.call('ZREM', KEYS[2], ARGV[1])
  local function key_of(hint)
    return hint == '' and ARGV[8] or ARGV[8] .. ':' .. hint
  end
  -- Ended sessions leave the index when a new one begins, up to two at a time. They come first: live sessions were used later.
  for _, hint in ipairs(redis.call('ZRANGE', KEYS[2], 0, 1)) do
    if redis.call('EXISTS', key_of(hint)) == 0 then
      redis.call('ZREM', KEYS[2], hint)
    end
  end
  -- Beyond the maximum, the least recently used session is evicted. A run of it that is still in progress is not saved.
  if redis.call('ZCARD', KEYS[2]) >= tonumber(ARGV[9]) then
    local oldest = redis.call('ZRANGE', KEYS[2], 0, 0)[1]
    local old = redis.call('HMGET', key_of(oldest), 'snapshot_id', 'snapshot_session')
    if old[1] then
      redis.call('ZADD', KEYS[3], now + ARGV[5], old[2] .. '/' .. old[1] .. '/' .. key_of(oldest))
    end
    redis.call('DEL', key_of(oldest))
    redis.call('ZREM', KEYS[2], oldest)
  end
end
redis.call('HSET', KEYS[1], 'last_used_at', now, 'language_last', ARGV[3])
redis.call('PEXPIRE', KEYS[1], ARGV[4])
redis.call('ZADD', KEYS[2], now, ARGV[1])
redis.call('PEXPIRE', KEYS[2], ARGV[4])
if KEYS[5] then
  redis.call('SET', KEYS[5], ARGV[1], 'PX', ARGV[4])
end
-- Only the latest attempt of the execution may move the session.
local attempt = redis.call('GET', KEYS[4])
local is_repeated = attempt == ARGV[6] or attempt == ARGV[6] .. ' settled' or attempt == ARGV[6] .. ' failed'
if not is_repeated then
  redis.call('SET', KEYS[4], ARGV[6], 'PX', ARGV[5])
  redis.call('ZADD', KEYS[3], now + ARGV[5], ARGV[6])
end
local function member(session, snapshot)
  return session .. '/' .. snapshot .. '/' .. KEYS[1]
end
local function current()
  return redis.call('HMGET', KEYS[1], 'snapshot_id', 'snapshot_session', 'snapshot_size')
end

local snapshot = current()
local before = redis.call('HMGET', KEYS[1], 'before_id', 'before_session', 'before_size')
if not is_repeated and snapshot[1] and snapshot[2] == ARGV[7] and before[1] then
  local known = before[1] ~= '' and redis.call('ZSCORE', KEYS[3], member(before[2], before[1]))
  if before[1] == '' or (known and tonumber(known) > now) then
    -- Other runs may have started from this snapshot.
    redis.call('ZADD', KEYS[3], now + ARGV[5], member(snapshot[2], snapshot[1]))
    redis.call('HDEL', KEYS[1], 'snapshot_id', 'snapshot_session', 'snapshot_size', 'before_id', 'before_session', 'before_size')
    if before[1] ~= '' then
      redis.call('HSET', KEYS[1], 'snapshot_id', before[1], 'snapshot_session', before[2], 'snapshot_size', before[3])
    end
    snapshot = current()
  end
end
if not snapshot[1] then
  return { id, '', '', '' }
end
redis.call('ZADD', KEYS[3], now + ARGV[4], member(snapshot[2], snapshot[1]))
return { id, snapshot[1], snapshot[2], snapshot[3] }
