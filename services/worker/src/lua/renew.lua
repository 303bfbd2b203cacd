-- Purpose: say that a worker lives and has these live jobs in work.
-- Guarantee: atomic. One that the store has forgotten, or believes to wait again, is the worker's still; one that was
--   withdrawn, or that another worker has, is not.
-- KEYS[1]: ids in work (sorted by the time when their worker counts as dead)
-- ARGV[1]: the worker   ARGV[2]: how long it may be silent in ms   ARGV[3]: what keys of jobs begin with
-- ARGV[4..]: id and time of taking of each
-- Returns: the ids of jobs that are not the worker's any more.
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local lost = {}
for at = 4, #ARGV, 2 do
  local id = ARGV[at]
  local key = ARGV[3] .. id
  local found = redis.call('HMGET', key, 'state', 'worker')
  local isOwn = found[1] == 'taken' and found[2] == ARGV[1]
  if isOwn or not found[1] or found[1] == 'waiting' then
    if not isOwn then
      redis.call('HDEL', key, 'job')
      redis.call('HSET', key, 'state', 'taken', 'worker', ARGV[1], 'at', ARGV[at + 1])
    end
    redis.call('PEXPIRE', key, ARGV[2])
    redis.call('ZADD', KEYS[1], now + ARGV[2], id)
    redis.call('PEXPIRE', KEYS[1], ARGV[2])
  else
    lost[#lost + 1] = id
  end
end
return lost
