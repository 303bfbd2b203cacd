-- Purpose: note a job that nobody waits for, before it is queued, and count what it takes there. Needs stored.lua before it.
-- Guarantee: atomic. A caller has no more than so many jobs that have not ended, and no more than so many bytes with this one.
-- KEYS[1]: svc:job:<id>   KEYS[2]: svc:jobs:<namespace>   KEYS[3]: svc:jobs-open:<namespace>
-- KEYS[4], KEYS[5]: ids and sizes of what is stored of the principal
-- ARGV[1]: id   ARGV[2]: now, ms since 1970   ARGV[3]: life in ms   ARGV[4]: the most jobs that have not ended; 0: no limit
-- ARGV[5]: fields of the record, JSON array of names and values   ARGV[6]: life of KEYS[2], ms: no record lives longer
-- ARGV[7]: bytes of the job   ARGV[8]: the most bytes that the principal may have then; 0: no limit
-- Returns: how many jobs of the caller have not ended, with this one; 0: there are too many, -1: too much is stored; it was not noted.
local most = tonumber(ARGV[4])
if most > 0 and redis.call('ZCARD', KEYS[3]) >= most then
  return 0
end
if ARGV[8] ~= '0' and stored_total(KEYS[4], KEYS[5]) + ARGV[7] > tonumber(ARGV[8]) then
  return -1
end
redis.call('HSET', KEYS[1], 'status', 'queued', 'created_at', ARGV[2], unpack(cjson.decode(ARGV[5])))
redis.call('PEXPIRE', KEYS[1], ARGV[3])
-- Records that are older have expired.
redis.call('ZREMRANGEBYSCORE', KEYS[2], '-inf', ARGV[2] - ARGV[6])
redis.call('ZADD', KEYS[2], ARGV[2], ARGV[1])
redis.call('PEXPIRE', KEYS[2], ARGV[6])
redis.call('ZADD', KEYS[3], ARGV[2], ARGV[1])
redis.call('PEXPIRE', KEYS[3], ARGV[3])
stored_put(KEYS[4], KEYS[5], ARGV[1], ARGV[7], ARGV[3])
return redis.call('ZCARD', KEYS[3])
