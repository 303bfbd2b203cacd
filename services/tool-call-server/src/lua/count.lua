-- Purpose: count the exchanges that have not expired, and forget those that have.
-- KEYS[1]: svc:tool:sessions
-- Returns: their number
local time = redis.call('TIME')
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', time[1] * 1000 + math.floor(time[2] / 1000))
return redis.call('ZCARD', KEYS[1])
