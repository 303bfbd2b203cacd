-- Purpose: a worker begins a kept job (no caller waits for it), perhaps after another worker died.
-- Guarantee: atomic. A job that has ended, or whose record is gone, does not begin again.
-- KEYS[1]: svc:job:<id>
-- ARGV[1]: now, ms since 1970
-- Returns: `run`; `cancelled` when somebody has asked to end it; `over` when there is nothing to do.
local record = redis.call('HMGET', KEYS[1], 'status', 'is_cancelled')
if record[1] ~= 'queued' and record[1] ~= 'running' then
  return 'over'
end
if record[2] then
  return 'cancelled'
end
redis.call('HSET', KEYS[1], 'status', 'running')
redis.call('HSETNX', KEYS[1], 'started_at', ARGV[1])
return 'run'
