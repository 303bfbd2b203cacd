-- Purpose: open the session of an execution.
-- Guarantee: atomic; an older session of the execution is removed, and its waiting requests are notified.
-- ARGV[3]: session id   ARGV[4]: hash of the callback token   ARGV[5]: waiting time of a call in ms
-- ARGV[6..]: names of the declared tools, as JSON
-- Returns: 1
if redis.call('DEL', SESSION, CALLS, RESULTS) > 0 then
  publish({ EXECUTION .. '/closed' })
end
redis.call('HSET', SESSION, 'session_id', ARGV[3], 'token', ARGV[4], 'timeout', ARGV[5])
for index = 6, #ARGV do
  redis.call('HSET', SESSION, 'tool:' .. ARGV[index], 1)
end
renew()
return 1
