-- Purpose: a worker takes up a job that nobody waits for, maybe after another worker that died.
-- Guarantee: atomic. A job that has ended, or is not known any more, does not begin again.
-- KEYS[1]: svc:job:<id>
-- ARGV[1]: now, ms since 1970
-- Returns: `run`, `cancelled`: somebody has asked for its end, `over`: there is nothing to do.
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
