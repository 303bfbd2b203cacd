-- Purpose: end the session of an execution.
-- Guarantee: atomic; nothing of it stays, and who waited is told. Ending it again changes nothing.
-- Returns: 1
redis.call('DEL', SESSION, CALLS, RESULTS)
redis.call('ZREM', INDEX, EXECUTION)
tell({ EXECUTION .. '/closed' })
return 1
