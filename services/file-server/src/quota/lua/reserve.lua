-- Purpose: reserve quota for objects of one account before they are visible, if the quota allows it.
-- Guarantee: atomic over all file servers, so an account never holds more than its quota. Expired reservations are released first.
--   An object that is reserved again counts once. A stored object needs no reservation, because it never changes.
-- KEYS[1]: svc:quota:entries:<account>   KEYS[2]: svc:quota:sizes:<account>   KEYS[3]: svc:quota:accounts
-- ARGV[1]: account   ARGV[2]: most bytes, 0: any   ARGV[3]: most objects, 0: any
-- ARGV[4]: life of a reservation in ms   ARGV[5]: life of the keys in ms   ARGV[6..]: address and bytes of each object, in turn
-- Returns: the exceeded limit ('bytes', 'objects' or ''), bytes and objects in use before, bytes and objects that were asked for.
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
for _, address in ipairs(redis.call('ZRANGEBYSCORE', KEYS[1], '(-' .. now, '(0')) do
  redis.call('HINCRBY', KEYS[2], 'total', -(redis.call('HGET', KEYS[2], address) or 0))
  redis.call('HDEL', KEYS[2], address)
  redis.call('ZREM', KEYS[1], address)
end
local bytes = tonumber(redis.call('HGET', KEYS[2], 'total') or 0)
local objects = redis.call('ZCARD', KEYS[1])
local more_bytes, more_objects = 0, 0
local reserved = {}
for index = 6, #ARGV, 2 do
  local address, size = ARGV[index], ARGV[index + 1]
  local score = tonumber(redis.call('ZSCORE', KEYS[1], address) or 0)
  if score <= 0 then
    more_bytes = more_bytes + size - (redis.call('HGET', KEYS[2], address) or 0)
    more_objects = more_objects + (score < 0 and 0 or 1)
    reserved[address] = size
  end
end
local most_bytes, most_objects = tonumber(ARGV[2]), tonumber(ARGV[3])
if most_bytes > 0 and more_bytes > 0 and bytes + more_bytes > most_bytes then
  return { 'bytes', bytes, objects, more_bytes, more_objects }
end
if most_objects > 0 and more_objects > 0 and objects + more_objects > most_objects then
  return { 'objects', bytes, objects, more_bytes, more_objects }
end
for address, size in pairs(reserved) do
  redis.call('ZADD', KEYS[1], -(now + ARGV[4]), address)
  redis.call('HSET', KEYS[2], address, size)
end
redis.call('HINCRBY', KEYS[2], 'total', more_bytes)
redis.call('SADD', KEYS[3], ARGV[1])
for index = 1, 3 do
  redis.call('PEXPIRE', KEYS[index], ARGV[5])
end
return { '', bytes, objects, more_bytes, more_objects }
