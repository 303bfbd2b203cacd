-- Purpose: take a seat of a caller. Goes before each script that uses it.
-- Guarantee: a seat is taken only while fewer than the cap are held; seats whose time has passed are free. The same call made twice
--   takes one seat.
-- key: svc:seats:<caller> or svc:rounds:<caller>   life: of a seat, in ms
-- Returns: how many seats the caller holds with the one that was taken, else 0.
local function take_seat(key, id, most, life)
  local time = redis.call('TIME')
  local now = time[1] * 1000 + math.floor(time[2] / 1000)
  redis.call('ZREMRANGEBYSCORE', key, '-inf', now)
  redis.call('ZREM', key, id)
  if redis.call('ZCARD', key) >= tonumber(most) then
    return 0
  end
  redis.call('ZADD', key, now + life, id)
  redis.call('PEXPIRE', key, life)
  return redis.call('ZCARD', key)
end

