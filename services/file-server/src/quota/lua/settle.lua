-- Purpose: record that objects of one account are stored, whether quota was reserved for them or not.
-- Guarantee: atomic; each object counts once, as seen now.
-- KEYS[1]: svc:quota:entries:<account>   KEYS[2]: svc:quota:sizes:<account>   KEYS[3]: svc:quota:accounts
-- ARGV[1]: account   ARGV[2]: life of the keys in ms   ARGV[3..]: address and bytes of each object, in turn
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
for index = 3, #ARGV, 2 do
  local held = redis.call('HGET', KEYS[2], ARGV[index]) or 0
  redis.call('HINCRBY', KEYS[2], 'total', ARGV[index + 1] - held)
  redis.call('HSET', KEYS[2], ARGV[index], ARGV[index + 1])
  redis.call('ZADD', KEYS[1], now, ARGV[index])
end
redis.call('SADD', KEYS[3], ARGV[1])
for index = 1, 3 do
  redis.call('PEXPIRE', KEYS[index], ARGV[2])
end
