-- Purpose: a job that nobody waits for has ended, or its caller wants it to end. Needs stored.lua before it.
-- Guarantee: atomic. The first end counts. A job that runs is only asked to end; after that it ends as cancelled.
-- KEYS[1]: svc:job:<id>   KEYS[2]: svc:jobs-open:<namespace>   KEYS[3]: svc:events:<id>, also the channel of its readers
-- KEYS[4], KEYS[5]: ids and sizes of what is stored of the principal
-- ARGV[1]: id   ARGV[2]: now, ms since 1970   ARGV[3]: `completed`, `failed` or `cancelled`   ARGV[4]: its end, JSON
-- ARGV[5]: life of what has ended, ms   ARGV[6]: `ask`: do not end a job that runs
-- ARGV[7]: the end of a job that was asked to end, JSON
-- Returns: the status that it had; false when it is not known.
local record = redis.call('HMGET', KEYS[1], 'status', 'is_cancelled')
local status = record[1]
if status == 'running' and ARGV[6] == 'ask' then
  redis.call('HSET', KEYS[1], 'is_cancelled', '1')
elseif status == 'queued' or status == 'running' then
  local becomes = record[2] and 'cancelled' or ARGV[3]
  local result = record[2] and ARGV[7] or ARGV[4]
  redis.call('HSET', KEYS[1], 'status', becomes, 'ended_at', ARGV[2], 'end', result)
  redis.call('PEXPIRE', KEYS[1], ARGV[5])
  redis.call('PEXPIRE', KEYS[3], ARGV[5])
  redis.call('ZREM', KEYS[2], ARGV[1])
  -- Of all parts of the stream: a program decides how large each one is.
  local events = redis.call('MEMORY', 'USAGE', KEYS[3], 'SAMPLES', 0) or 0
  stored_put(KEYS[4], KEYS[5], ARGV[1], #result + events, ARGV[5])
  redis.call('PUBLISH', KEYS[3], 'ended')
end
return status
