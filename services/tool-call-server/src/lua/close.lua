-- Purpose: end the exchange of an execution.
-- Guarantee: atomic; all its keys are removed and waiting requests are notified. A repeat changes nothing.
-- Returns: 1
redis.call('DEL', EXCHANGE, CALLS, RESULTS)
redis.call('ZREM', INDEX, EXECUTION)
publish({ EXECUTION .. '/closed' })
return 1
