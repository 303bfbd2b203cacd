-- Purpose: remove a kept job (no caller waits for it) with its events. Needs stored.lua before it.
-- Guarantee: atomic. Nothing of the job is stored or counted afterwards.
-- KEYS[1]: svc:job:<id>   KEYS[2]: svc:events:<id>   KEYS[3]: svc:jobs:<namespace>   KEYS[4]: svc:jobs-open:<namespace>
-- KEYS[5], KEYS[6]: ids and sizes of the data stored for the principal
-- ARGV[1]: id
redis.call('UNLINK', KEYS[1], KEYS[2])
redis.call('ZREM', KEYS[3], ARGV[1])
redis.call('ZREM', KEYS[4], ARGV[1])
stored_put(KEYS[5], KEYS[6], ARGV[1], 0, 0)
