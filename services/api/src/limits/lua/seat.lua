-- Purpose: take a seat for a caller. Must come before each script that uses it.
-- Guarantee: a seat is taken only while the caller holds fewer than the cap. Expired seats are free. A repeated call with the same id
--   takes one seat.
-- key: svc:seats:<caller> or svc:rounds:<caller>   life: of a seat, in ms
-- Returns: the caller's seats including this one, or 0 when none was taken.
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

