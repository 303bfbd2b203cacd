-- Purpose: count the exchanges that have not expired. Changes nothing.
-- KEYS[1]: svc:tool:sessions
-- Returns: their number
local time = redis.call('TIME')
return redis.call('ZCOUNT', KEYS[1], '(' .. time[1] * 1000 + math.floor(time[2] / 1000), '+inf')
