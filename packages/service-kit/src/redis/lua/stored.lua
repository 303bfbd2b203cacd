-- Purpose: count the bytes that Redis stores for a principal. Is prepended to each script that uses it.
-- Guarantee: entries whose data has expired in Redis no longer count. A principal without stored data has no keys.
-- ids: sorted set of executions, jobs and kept answers. The score is the time at which their data expires, ms since 1970
-- sizes: hash of bytes by id, with their sum in the field `total`
local function stored_remove(ids, sizes, id)
  local size = redis.call('HGET', sizes, id)
  if size then
    redis.call('HDEL', sizes, id)
    redis.call('HINCRBY', sizes, 'total', -size)
  end
  redis.call('ZREM', ids, id)
end

local function stored_now()
  local time = redis.call('TIME')
  return time[1] * 1000 + math.floor(time[2] / 1000)
end

local function stored_total(ids, sizes)
  local expired = redis.call('ZRANGEBYSCORE', ids, '-inf', stored_now(), 'LIMIT', 0, 1000)
  for _, id in ipairs(expired) do
    stored_remove(ids, sizes, id)
  end
  return tonumber(redis.call('HGET', sizes, 'total') or 0)
end

local function stored_put(ids, sizes, id, size, life)
  stored_remove(ids, sizes, id)
  if tonumber(size) > 0 then
    redis.call('ZADD', ids, stored_now() + life, id)
    redis.call('HSET', sizes, id, size)
    redis.call('HINCRBY', sizes, 'total', size)
    for _, key in ipairs({ ids, sizes }) do
      redis.call('PEXPIRE', key, life, 'NX')
      redis.call('PEXPIRE', key, life, 'GT')
    end
  elseif redis.call('EXISTS', ids) == 0 then
    redis.call('DEL', sizes)
  end
end
