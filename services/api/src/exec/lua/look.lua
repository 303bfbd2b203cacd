-- Purpose: say what is known of a live job; of one that waits, tell the workers again: a hint may have been lost.
-- KEYS[1]: the job (hash)
-- ARGV[1]: channel for hints   ARGV[2]: the hint
-- Returns: its state, the time when it was taken and its result, as far as there are any.
local found = redis.call('HMGET', KEYS[1], 'state', 'at', 'result')
if found[1] == 'waiting' then
  redis.call('PUBLISH', ARGV[1], ARGV[2])
end
return found
