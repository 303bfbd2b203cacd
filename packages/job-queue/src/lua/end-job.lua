-- Purpose: end a kept job (no caller waits for it), or ask a running one to end. Needs stored.lua before it.
-- Guarantee: atomic. Only the first end counts. With `ask`, a running job is only marked; when it ends, it ends as cancelled.
-- KEYS[1]: svc:job:<id>   KEYS[2]: svc:jobs-open:<namespace>   KEYS[3]: svc:events:<id>, also the channel of its readers
-- KEYS[4], KEYS[5]: ids and sizes of the data stored for the principal
-- ARGV[1]: id   ARGV[2]: now, ms since 1970   ARGV[3]: `completed`, `failed` or `cancelled`   ARGV[4]: the result, JSON
-- ARGV[5]: life of an ended job, ms   ARGV[6]: `ask`: do not end a running job
-- ARGV[7]: the result of a job that was asked to end, JSON
-- Returns: the status before; false when the job is not known.
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
  -- SAMPLES 0 measures all entries of the stream, because the program decides the size of each one.
  local events = redis.call('MEMORY', 'USAGE', KEYS[3], 'SAMPLES', 0) or 0
  stored_put(KEYS[4], KEYS[5], ARGV[1], #result + events, ARGV[5])
  redis.call('PUBLISH', KEYS[3], 'ended')
end
return status
