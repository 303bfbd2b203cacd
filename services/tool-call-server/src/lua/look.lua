-- Purpose: find out whether a recorded call has its result. Changes nothing.
-- ARGV[3]: call id
-- Returns: {'gone'} when the exchange or its call no longer exists, {'answered', text of the result}, {'waiting', ms left}
if redis.call('HEXISTS', CALLS, ARGV[3]) == 0 then
  return { 'gone' }
end
local result = redis.call('HGET', RESULTS, ARGV[3])
if result then
  return { 'answered', result }
end
return { 'waiting', left_ms() }
