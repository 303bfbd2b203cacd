-- Purpose: store the answer to a request if its principal has room for it, else delete the entry. Needs stored.lua before it.
-- Guarantee: atomic; the entry of another request is not changed.
-- KEYS[1]: the entry   KEYS[2]: ids   KEYS[3]: sizes
-- ARGV[1]: the text of the entry while the request runs   ARGV[2]: its text with the answer   ARGV[3]: its life in ms
-- ARGV[4]: bytes of that text   ARGV[5]: the most bytes that its principal may have stored, these included; 0: no limit
-- Returns: 1 when the answer is stored, else 0.
local found = redis.call('GET', KEYS[1])
if found and found ~= ARGV[1] then
  return 0
end
local most = tonumber(ARGV[5])
if most > 0 and stored_total(KEYS[2], KEYS[3]) + ARGV[4] > most then
  redis.call('DEL', KEYS[1])
  return 0
end
redis.call('SET', KEYS[1], ARGV[2], 'PX', ARGV[3])
stored_put(KEYS[2], KEYS[3], KEYS[1], ARGV[4], ARGV[3])
return 1
