-- Purpose: take the live job that waits longest.
-- Guarantee: atomic; a job is taken once, and never after it was withdrawn.
-- KEYS[1]: ids that wait (list)   KEYS[2]: ids in work (sorted by the time when their worker counts as dead)
-- ARGV[1]: the worker   ARGV[2]: its time in ms   ARGV[3]: how long it may be silent in ms   ARGV[4]: what keys of jobs begin with
-- Returns: id and job; nil when none waits.
local id = redis.call('LPOP', KEYS[1])
while id do
  local key = ARGV[4] .. id
  local found = redis.call('HMGET', key, 'state', 'job')
  if found[1] == 'waiting' then
    redis.call('HDEL', key, 'job')
    redis.call('HSET', key, 'state', 'taken', 'worker', ARGV[1], 'at', ARGV[2])
    redis.call('PEXPIRE', key, ARGV[3])
    local time = redis.call('TIME')
    local now = time[1] * 1000 + math.floor(time[2] / 1000)
    redis.call('ZREMRANGEBYSCORE', KEYS[2], '-inf', now)
    redis.call('ZADD', KEYS[2], now + ARGV[3], id)
    redis.call('PEXPIRE', KEYS[2], ARGV[3])
    return {id, found[2]}
  end
  id = redis.call('LPOP', KEYS[1])
end
return nil
