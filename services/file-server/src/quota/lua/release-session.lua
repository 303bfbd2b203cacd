-- Purpose: release the reservations of one account for the files of a session that will not be committed.
-- Guarantee: atomic; what was settled before stays.
-- KEYS[1]: svc:quota:entries:<account>   KEYS[2]: svc:quota:sizes:<account>
-- ARGV[1]: session
local prefix = ARGV[1] .. '/'
for _, address in ipairs(redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', '(0')) do
  if string.sub(address, 1, #prefix) == prefix then
    redis.call('HINCRBY', KEYS[2], 'total', -(redis.call('HGET', KEYS[2], address) or 0))
    redis.call('HDEL', KEYS[2], address)
    redis.call('ZREM', KEYS[1], address)
  end
end
