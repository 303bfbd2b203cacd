-- Purpose: release the quota of objects that a recount did not find, and of expired reservations.
-- Guarantee: atomic; what was settled since the recount began stays.
-- KEYS[1]: svc:quota:entries:<account>   KEYS[2]: svc:quota:sizes:<account>   KEYS[3]: svc:quota:accounts
-- ARGV[1]: account   ARGV[2]: when the recount began, in ms by Redis's clock   ARGV[3]: most objects of one call
-- Returns: number of released objects, bytes and objects that stay.
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local pruned = 0
for _, range in ipairs({ { '(-' .. now, '(0' }, { '(0', '(' .. ARGV[2] } }) do
  for _, address in ipairs(redis.call('ZRANGEBYSCORE', KEYS[1], range[1], range[2], 'LIMIT', 0, ARGV[3])) do
    redis.call('HINCRBY', KEYS[2], 'total', -(redis.call('HGET', KEYS[2], address) or 0))
    redis.call('HDEL', KEYS[2], address)
    redis.call('ZREM', KEYS[1], address)
    pruned = pruned + 1
  end
end
local objects = redis.call('ZCARD', KEYS[1])
local bytes = tonumber(redis.call('HGET', KEYS[2], 'total') or 0)
if objects == 0 then
  redis.call('DEL', KEYS[1], KEYS[2])
  redis.call('SREM', KEYS[3], ARGV[1])
end
return { pruned, bytes, objects }
