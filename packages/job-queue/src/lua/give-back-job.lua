-- Purpose: record that a kept job (no caller waits for it) goes back to the queue.
-- Guarantee: atomic. A job that was asked to end does not go back.
-- KEYS[1]: svc:job:<id>
-- ARGV[1]: empty when the job has not started
-- Returns: `queued`, or `cancelled` when the job is to end.
local record = redis.call('HMGET', KEYS[1], 'status', 'is_cancelled')
if record[2] then
  return 'cancelled'
end
if ARGV[1] == '' and record[1] == 'running' then
  redis.call('HSET', KEYS[1], 'status', 'queued')
  redis.call('HDEL', KEYS[1], 'started_at')
end
return 'queued'
