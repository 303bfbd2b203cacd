-- Purpose: remove a session at the request of its owner.
-- Guarantee: atomic. A run of it that is still in progress finds another session or none when it ends, and is not saved.
-- KEYS[1]: sessionstate:<namespace>[:<hint>]   KEYS[2]: svc:sessions:index:<namespace>   KEYS[3]: svc:sessions:snapshots
-- ARGV[1]: id of the session   ARGV[2]: ms in which any run must be over
-- Returns: 1, or 0 when the record is of another session by now.
local record = redis.call('HMGET', KEYS[1], 'id', 'snapshot_id', 'snapshot_session', 'hint')
if record[1] ~= ARGV[1] then
  return 0
end
redis.call('DEL', KEYS[1])
redis.call('ZREM', KEYS[2], record[4])
if record[2] then
  local time = redis.call('TIME')
  local now = time[1] * 1000 + math.floor(time[2] / 1000)
  redis.call('ZADD', KEYS[3], now + ARGV[2], record[3] .. '/' .. record[2] .. '/' .. KEYS[1])
end
return 1
