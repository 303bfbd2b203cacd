-- Purpose: put a live job into the list of those that wait, and tell the workers.
-- Guarantee: atomic; a job that is known already, in whatever state, is left as it is.
-- KEYS[1]: ids that wait (list)   KEYS[2]: the job (hash)
-- ARGV[1]: its id   ARGV[2]: the job as JSON   ARGV[3]: life of what waits in ms   ARGV[4]: how many may wait
-- ARGV[5]: channel for hints   ARGV[6]: the hint
-- Returns: 1; 0 when the job is known; -1 when too many wait.
if redis.call('EXISTS', KEYS[2]) == 1 then
  return 0
end
if redis.call('LLEN', KEYS[1]) >= tonumber(ARGV[4]) then
  return -1
end
redis.call('HSET', KEYS[2], 'state', 'waiting', 'job', ARGV[2])
redis.call('PEXPIRE', KEYS[2], ARGV[3])
redis.call('RPUSH', KEYS[1], ARGV[1])
redis.call('PEXPIRE', KEYS[1], ARGV[3])
redis.call('PUBLISH', ARGV[5], ARGV[6])
return 1
