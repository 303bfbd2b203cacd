-- Purpose: withdraw a live job.
-- Guarantee: atomic; a job that is withdrawn is not taken any more, and what becomes of one that was taken reaches nobody.
-- KEYS[1]: ids that wait (list)   KEYS[2]: the job (hash)
-- ARGV[1]: its id   ARGV[2]: how long it is remembered in ms   ARGV[3]: '1' to withdraw one that was taken as well
-- Returns: nil when it is withdrawn; the time when it was taken when it is left as it is.
local found = redis.call('HMGET', KEYS[2], 'state', 'at')
if found[1] == 'ended' or (found[1] == 'taken' and ARGV[3] ~= '1') then
  return found[2]
end
redis.call('DEL', KEYS[2])
redis.call('HSET', KEYS[2], 'state', 'withdrawn')
redis.call('PEXPIRE', KEYS[2], ARGV[2])
redis.call('LREM', KEYS[1], 1, ARGV[1])
return nil
