-- Purpose: record a kept job (no caller waits for it) before it is queued, and count its bytes. Needs stored.lua before it.
-- Guarantee: atomic. A caller never exceeds the limits of ARGV[4] unfinished jobs and ARGV[8] bytes, with this job included.
-- KEYS[1]: svc:job:<id>   KEYS[2]: svc:jobs:<namespace>   KEYS[3]: svc:jobs-open:<namespace>
-- KEYS[4], KEYS[5]: ids and sizes of the data stored for the principal
-- ARGV[1]: id   ARGV[2]: now, ms since 1970   ARGV[3]: life in ms   ARGV[4]: most unfinished jobs; 0: no limit
-- ARGV[5]: fields of the record, JSON array of names and values   ARGV[6]: life of KEYS[2], ms: no record lives longer
-- ARGV[7]: bytes of the job   ARGV[8]: most stored bytes of the principal, with this job; 0: no limit
-- Returns: the caller's number of unfinished jobs, with this one. 0: too many jobs, -1: too many bytes; then nothing was recorded.
local most = tonumber(ARGV[4])
if most > 0 and redis.call('ZCARD', KEYS[3]) >= most then
  return 0
end
if ARGV[8] ~= '0' and stored_total(KEYS[4], KEYS[5]) + ARGV[7] > tonumber(ARGV[8]) then
  return -1
end
redis.call('HSET', KEYS[1], 'status', 'queued', 'created_at', ARGV[2], unpack(cjson.decode(ARGV[5])))
redis.call('PEXPIRE', KEYS[1], ARGV[3])
-- The records of older entries have expired.
redis.call('ZREMRANGEBYSCORE', KEYS[2], '-inf', ARGV[2] - ARGV[6])
redis.call('ZADD', KEYS[2], ARGV[2], ARGV[1])
redis.call('PEXPIRE', KEYS[2], ARGV[6])
redis.call('ZADD', KEYS[3], ARGV[2], ARGV[1])
redis.call('PEXPIRE', KEYS[3], ARGV[3])
stored_put(KEYS[4], KEYS[5], ARGV[1], ARGV[7], ARGV[3])
return redis.call('ZCARD', KEYS[3])
