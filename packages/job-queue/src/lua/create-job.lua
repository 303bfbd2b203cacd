-- Purpose: note a job that nobody waits for, before it is queued.
-- Guarantee: atomic. A caller has no more than so many jobs that have not ended.
-- KEYS[1]: svc:job:<id>   KEYS[2]: svc:jobs:<namespace>   KEYS[3]: svc:jobs-open:<namespace>
-- ARGV[1]: id   ARGV[2]: now, ms since 1970   ARGV[3]: life in ms   ARGV[4]: the most jobs that have not ended; 0: no limit
-- ARGV[5]: fields of the record, JSON array of names and values   ARGV[6]: life of KEYS[2], ms: no record lives longer
-- Returns: how many jobs of the caller have not ended, with this one; 0: it was not noted.
local most = tonumber(ARGV[4])
if most > 0 and redis.call('ZCARD', KEYS[3]) >= most then
  return 0
end
redis.call('HSET', KEYS[1], 'status', 'queued', 'created_at', ARGV[2], unpack(cjson.decode(ARGV[5])))
redis.call('PEXPIRE', KEYS[1], ARGV[3])
-- Records that are older have expired.
redis.call('ZREMRANGEBYSCORE', KEYS[2], '-inf', ARGV[2] - ARGV[6])
redis.call('ZADD', KEYS[2], ARGV[2], ARGV[1])
redis.call('PEXPIRE', KEYS[2], ARGV[6])
redis.call('ZADD', KEYS[3], ARGV[2], ARGV[1])
redis.call('PEXPIRE', KEYS[3], ARGV[3])
return redis.call('ZCARD', KEYS[3])
