-- Purpose: open the exchange of an execution.
-- Guarantee: atomic; an older exchange of the execution is removed, and its waiting requests are notified.
-- ARGV[3]: its session_id   ARGV[4]: hash of the callback token   ARGV[5]: waiting time of a call in ms
-- ARGV[6..]: names of the declared tools, as JSON
-- Returns: 1
if redis.call('DEL', EXCHANGE, CALLS, RESULTS) > 0 then
  publish({ EXECUTION .. '/closed' })
end
redis.call('HSET', EXCHANGE, 'session_id', ARGV[3], 'token', ARGV[4], 'timeout', ARGV[5])
for index = 6, #ARGV do
  redis.call('HSET', EXCHANGE, 'tool:' .. ARGV[index], 1)
end
-- Not the revision that an older exchange of the execution had.
redis.call('HSET', EXCHANGE, 'rev', renew())
return 1
