-- Purpose: record the results of calls.
-- Guarantee: atomic; the first result of a call stays; the exchange is renewed. A result may come before its call: a Redis
--   that crashed may have lost the call, which the request that waits for it records again.
-- ARGV[3], ARGV[4], …: call id and text of its result, in turn
-- Returns: how many of the given results are the result of their call now; -1 when there is no exchange
if redis.call('EXISTS', EXCHANGE) == 0 then
  return -1
end
local processed, topics = 0, {}
for index = 3, #ARGV, 2 do
  local id, text = ARGV[index], ARGV[index + 1]
  if redis.call('HSETNX', RESULTS, id, text) == 1 then
    processed = processed + 1
    topics[#topics + 1] = EXECUTION .. '/' .. id
  elseif redis.call('HGET', RESULTS, id) == text then
    processed = processed + 1
  end
end
renew()
changed(topics)
return processed
