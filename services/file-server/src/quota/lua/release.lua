-- Purpose: release the quota of objects of one account that were not stored or are gone.
-- Guarantee: atomic; an object that holds no quota changes nothing.
-- KEYS[1]: svc:quota:entries:<account>   KEYS[2]: svc:quota:sizes:<account>
-- ARGV: addresses of the objects
for _, address in ipairs(ARGV) do
  local held = redis.call('HGET', KEYS[2], address)
  if held then
    redis.call('HINCRBY', KEYS[2], 'total', -held)
    redis.call('HDEL', KEYS[2], address)
    redis.call('ZREM', KEYS[1], address)
  end
end
