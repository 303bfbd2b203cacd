-- Purpose: keep the result of a live job, and hand it to the API process that waits.
-- Guarantee: atomic; nothing is kept and nobody is told when the job is not the worker's any more.
-- KEYS[1]: the job (hash)   KEYS[2]: ids in work
-- ARGV[1]: the worker   ARGV[2]: id   ARGV[3]: the result as JSON   ARGV[4]: how long it is kept in ms
-- ARGV[5]: channel of the API process, empty for none   ARGV[6]: time of taking
-- Returns: 1 when it was kept, else 0.
redis.call('ZREM', KEYS[2], ARGV[2])
local found = redis.call('HMGET', KEYS[1], 'state', 'worker')
if found[1] and found[1] ~= 'waiting' and not (found[1] == 'taken' and found[2] == ARGV[1]) then
  return 0
end
redis.call('DEL', KEYS[1])
redis.call('HSET', KEYS[1], 'state', 'ended', 'at', ARGV[6], 'result', ARGV[3])
redis.call('PEXPIRE', KEYS[1], ARGV[4])
if ARGV[5] ~= '' then
  redis.call('PUBLISH', ARGV[5], '{"job":' .. cjson.encode(ARGV[2]) .. ',"result":' .. ARGV[3] .. '}')
end
return 1
